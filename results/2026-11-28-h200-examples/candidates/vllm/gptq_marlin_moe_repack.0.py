"""gptq_marlin_moe_repack: GPTQ's weights of all experts in the order in which Marlin's kernels take them.

Without a permutation a program takes words of a row of tiles as they lie and turns them around on chip: a word of the
result has codes of two words at most, at fixed distances. With one every code is gathered by itself.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _spread(x, SHIFT: tl.constexpr, MASK: tl.constexpr):
    """The upper part of x's codes moved up by SHIFT bits."""
    return (x | (x << SHIFT)) & MASK


@triton.jit
def _rows(word_ptr, n, column, inside, ROWS: tl.constexpr):
    """Words of ROWS rows."""
    row = tl.arange(0, ROWS)[:, None]
    return tl.load(word_ptr + row.to(tl.int64) * n + column[None, :], mask=(row >= 0) & inside[None, :], other=0)


@triton.jit
def _turned_8(word_ptr, n, column, inside, BITS: tl.constexpr, TILES: tl.constexpr):
    """Words of TILES tiles of 32 rows and 32 columns, for 8-bit activations."""
    if BITS == 4:
        low = _rows(word_ptr, n, column, inside, 2)
        high = _rows(word_ptr + 2 * n.to(tl.int64), n, column, inside, 2)
        # (row, tile, w, q) to (tile, q, row, w)
        low = tl.reshape(tl.permute(tl.reshape(low, [2, TILES, 4, 8]), (1, 3, 0, 2)), [TILES, 8, 2, 1, 4])
        high = tl.reshape(tl.permute(tl.reshape(high, [2, TILES, 4, 8]), (1, 3, 0, 2)), [TILES, 8, 2, 1, 4])
        shift = tl.reshape(tl.arange(0, 2) * 16, [1, 1, 1, 2, 1])
        low = _spread(_spread((low >> shift) & 0xFFFF, 8, 0x00FF00FF), 4, 0x0F0F0F0F)
        high = _spread(_spread((high >> shift) & 0xFFFF, 8, 0x00FF00FF), 4, 0x0F0F0F0F)
        return tl.reshape(low | (high << 4), [TILES * 128])
    else:
        words = _rows(word_ptr, n, column, inside, 8)
        # (b, j, tile, w, q) to (tile, q, j, w, b)
        return tl.reshape(tl.permute(tl.reshape(words, [2, 4, TILES, 4, 8]), (2, 4, 1, 3, 0)), [TILES * 256])


@triton.jit
def _turned_16(word_ptr, n, column, inside, BITS: tl.constexpr, TILES: tl.constexpr):
    """Words of TILES tiles of 16 rows and 64 columns."""
    if BITS == 4:
        low = tl.load(word_ptr + column, mask=inside, other=0)
        high = tl.load(word_ptr + n.to(tl.int64) + column, mask=inside, other=0)
        # (tile, w, h, q) to (tile, q, w), for each h
        low0, low1 = tl.split(tl.permute(tl.reshape(low, [TILES, 4, 2, 8]), (0, 3, 1, 2)))
        high0, high1 = tl.split(tl.permute(tl.reshape(high, [TILES, 4, 2, 8]), (0, 3, 1, 2)))
        shift = tl.reshape(tl.arange(0, 4) * 8, [1, 1, 4, 1])
        a = _spread((tl.reshape(low0, [TILES, 8, 1, 4]) >> shift) & 0xFF, 12, 0x000F000F)
        b = _spread((tl.reshape(high0, [TILES, 8, 1, 4]) >> shift) & 0xFF, 12, 0x000F000F)
        c = _spread((tl.reshape(low1, [TILES, 8, 1, 4]) >> shift) & 0xFF, 12, 0x000F000F)
        d = _spread((tl.reshape(high1, [TILES, 8, 1, 4]) >> shift) & 0xFF, 12, 0x000F000F)
        return tl.reshape(a | (b << 4) | (c << 8) | (d << 12), [TILES * 128])
    else:
        low = _rows(word_ptr, n, column, inside, 2)
        high = _rows(word_ptr + 2 * n.to(tl.int64), n, column, inside, 2)
        # (row, tile, w, h, q) to (tile, q, row, w, h)
        low = tl.reshape(tl.permute(tl.reshape(low, [2, TILES, 4, 2, 8]), (1, 4, 0, 2, 3)), [TILES, 8, 2, 1, 8])
        high = tl.reshape(tl.permute(tl.reshape(high, [2, TILES, 4, 2, 8]), (1, 4, 0, 2, 3)), [TILES, 8, 2, 1, 8])
        shift = tl.reshape(tl.arange(0, 2) * 16, [1, 1, 1, 2, 1])
        low = _spread((low >> shift) & 0xFFFF, 8, 0x00FF00FF)
        high = _spread((high >> shift) & 0xFFFF, 8, 0x00FF00FF)
        return tl.reshape(low | (high << 8), [TILES * 256])


@triton.jit
def _repack(
    word_ptr, out_ptr, n, rows, blocks, bands,
    BITS: tl.constexpr, ACTIVATIONS_8: tl.constexpr, COLUMNS: tl.constexpr, TILES: tl.constexpr,
):  # fmt: skip
    """COLUMNS columns of one row of tiles; ``rows`` rows of words make an expert, ``bands`` rows of tiles."""
    HEIGHT: tl.constexpr = BITS if ACTIVATIONS_8 else BITS // 2
    WORDS: tl.constexpr = 32 * BITS
    block = tl.program_id(0) % blocks
    band = ((tl.program_id(0) // blocks) % bands).to(tl.int64)
    expert = (tl.program_id(0) // blocks // bands).to(tl.int64)
    word_ptr += (expert * rows + band * HEIGHT) * n + block * COLUMNS
    column = tl.arange(0, COLUMNS)
    inside = block * COLUMNS + column < n
    across = n // (32 if ACTIVATIONS_8 else 64)
    if ACTIVATIONS_8:
        words = _turned_8(word_ptr, n, column, inside, BITS, TILES)
    else:
        words = _turned_16(word_ptr, n, column, inside, BITS, TILES)
    i = tl.arange(0, TILES * WORDS)
    out_ptr += expert * (rows.to(tl.int64) * n) + band * across * WORDS + block.to(tl.int64) * (TILES * WORDS)
    tl.store(out_ptr + i, words, mask=block * TILES + i // WORDS < across)


@triton.jit
def _code(word_ptr, order_ptr, order_stride, row, column, inside, n, BITS: tl.constexpr):
    """The code of permuted row ``row``."""
    PER_WORD: tl.constexpr = 32 // BITS
    source = tl.load(order_ptr + row.to(tl.int64) * order_stride, mask=inside, other=0)
    word = tl.load(word_ptr + (source // PER_WORD).to(tl.int64) * n + column, mask=inside, other=0)
    return (word >> ((source % PER_WORD) * BITS)) & ((1 << BITS) - 1)


@triton.jit
def _repack_permuted(
    word_ptr, order_ptr, out_ptr, n, rows, blocks, bands, order_expert, order_stride,
    BITS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """BLOCK words of one row of tiles of 16 rows and 64 columns."""
    WORDS: tl.constexpr = 32 * BITS
    band = (tl.program_id(0) // blocks) % bands
    expert = (tl.program_id(0) // blocks // bands).to(tl.int64)
    band_words = (n // 64).to(tl.int64) * WORDS
    word_ptr += expert * (rows.to(tl.int64) * n)
    order_ptr += expert * order_expert
    i = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < band_words
    place = (i % WORDS).to(tl.int32)
    quad = place // BITS
    row = band * 16 + 2 * (quad % 4)
    if BITS == 4:
        column = i // WORDS * 64 + 16 * (place % 4) + quad // 4
    else:
        column = i // WORDS * 64 + 16 * (place % 8 // 2) + quad // 4 + 8 * (place % 2)
    word = _code(word_ptr, order_ptr, order_stride, row, column, inside, n, BITS)
    word |= _code(word_ptr, order_ptr, order_stride, row + 8, column, inside, n, BITS) << BITS
    word |= _code(word_ptr, order_ptr, order_stride, row + 1, column, inside, n, BITS) << 16
    word |= _code(word_ptr, order_ptr, order_stride, row + 9, column, inside, n, BITS) << (16 + BITS)
    if BITS == 4:
        word |= _code(word_ptr, order_ptr, order_stride, row, column + 8, inside, n, BITS) << 8
        word |= _code(word_ptr, order_ptr, order_stride, row + 8, column + 8, inside, n, BITS) << 12
        word |= _code(word_ptr, order_ptr, order_stride, row + 1, column + 8, inside, n, BITS) << 24
        word |= _code(word_ptr, order_ptr, order_stride, row + 9, column + 8, inside, n, BITS) << 28
    tl.store(out_ptr + expert * (rows.to(tl.int64) * n) + band.to(tl.int64) * band_words + i, word, mask=inside)


def gptq_marlin_moe_repack(b_q_weight, perm, size_k, size_n, num_bits, is_a_8bit):
    """b_q_weight: int32 (experts, size_k * num_bits / 32, size_n); perm: int32 (experts, size_k), or of no elements."""
    experts = b_q_weight.shape[0]
    shape = (experts, size_k // 16, size_n * num_bits // 2)
    out = torch.empty(shape, dtype=b_q_weight.dtype, device=b_q_weight.device)
    if out.numel() == 0:
        return out
    rows = size_k * num_bits // 32
    if not is_a_8bit and perm is not None and perm.numel() != 0:
        blocks, bands = triton.cdiv(size_n // 2 * num_bits, 512), size_k // 16
        _repack_permuted[(blocks * bands * experts,)](
            b_q_weight, perm, out, size_n, rows, blocks, bands, *perm.stride(), BITS=num_bits, BLOCK=512, num_warps=4
        )
        return out
    bands = size_k // (32 if is_a_8bit else 16)
    largest = (512 if is_a_8bit else 1024) * 4 // num_bits
    columns = max(64, min(largest, triton.next_power_of_2(size_n)))
    blocks = triton.cdiv(size_n, columns)
    _repack[(blocks * bands * experts,)](
        b_q_weight, out, size_n, rows, blocks, bands, BITS=num_bits, ACTIVATIONS_8=bool(is_a_8bit),
        COLUMNS=columns, TILES=columns // (32 if is_a_8bit else 64), num_warps=4,
    )  # fmt: skip
    return out
