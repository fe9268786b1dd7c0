"""awq_marlin_moe_repack: AWQ's weights of all experts in the order in which Marlin's kernels take them.

A program turns whole tiles around on chip: the codes of eight (4 bits) or four (8 bits) words are exchanged as a
matrix is transposed, by halves, then quarters of words, so that nothing is shifted code by code.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _halves(x, y):
    """Words of both low halves and of both high halves."""
    return (x & 0xFFFF) | (y << 16), (x >> 16) | ((y >> 16) << 16)


@triton.jit
def _bytes(x, y):
    """Words of both words' even bytes, in turn, and of their odd ones."""
    return (x & 0x00FF00FF) | ((y & 0x00FF00FF) << 8), ((x >> 8) & 0x00FF00FF) | (((y >> 8) & 0x00FF00FF) << 8)


@triton.jit
def _nibbles(x, y):
    """Words of both words' even nibbles, in turn, and of their odd ones."""
    return (x & 0x0F0F0F0F) | ((y & 0x0F0F0F0F) << 4), ((x >> 4) & 0x0F0F0F0F) | (((y >> 4) & 0x0F0F0F0F) << 4)


@triton.jit
def _transposed_nibbles(a0, a1, a2, a3, a4, a5, a6, a7):
    """Nibble i of word k is nibble k of word i."""
    b0, b4 = _halves(a0, a4)
    b1, b5 = _halves(a1, a5)
    b2, b6 = _halves(a2, a6)
    b3, b7 = _halves(a3, a7)
    c0, c2 = _bytes(b0, b2)
    c1, c3 = _bytes(b1, b3)
    c4, c6 = _bytes(b4, b6)
    c5, c7 = _bytes(b5, b7)
    d0, d1 = _nibbles(c0, c1)
    d2, d3 = _nibbles(c2, c3)
    d4, d5 = _nibbles(c4, c5)
    d6, d7 = _nibbles(c6, c7)
    return d0, d1, d2, d3, d4, d5, d6, d7


@triton.jit
def _transposed_bytes(a0, a1, a2, a3):
    """Byte i of word k is byte k of word i."""
    b0, b2 = _halves(a0, a2)
    b1, b3 = _halves(a1, a3)
    c0, c1 = _bytes(b0, b1)
    c2, c3 = _bytes(b2, b3)
    return c0, c1, c2, c3


@triton.jit
def _row(word_ptr, tile_at, rows, first, words, column, inside):
    """uint32 (tiles, 4, columns): words of the tiles' rows ``first + rows``."""
    at = tile_at[:, None, None] + (first + rows)[None, :, None] * words + column[None, None, :]
    return tl.load(word_ptr + at, mask=inside[:, None, None], other=0).to(tl.uint32, bitcast=True)


@triton.jit
def _split_row(word_ptr, tile_at, rows, first, words, column, inside, TILES: tl.constexpr, PAIRS: tl.constexpr):
    """The even and the odd columns of such rows."""
    x = _row(word_ptr, tile_at, rows, first, words, column, inside)
    return tl.split(tl.reshape(x, [TILES, 4, PAIRS, 2]))


@triton.jit
def _store(out_ptr, tile_at, first, place, inside, word):
    at = out_ptr + tile_at[:, None, None] + (first + place)
    tl.store(at, word.to(tl.int32, bitcast=True), mask=inside[:, None, None])


@triton.jit
def _repack_nibbles(word_ptr, out_ptr, tiles, across, ACTIVATIONS_8: tl.constexpr, TILES: tl.constexpr):
    """TILES tiles of 4-bit codes: 16 rows and 64 columns, or, for 8-bit activations, 32 rows and 32 columns."""
    tile = tl.program_id(0) * TILES + tl.arange(0, TILES)
    inside = tile < tiles
    band = (tile // across).to(tl.int64)
    quarter, w = tl.arange(0, 4), tl.arange(0, 4)
    if ACTIVATIONS_8:
        words = across * 4
        at = band * (32 * words) + (tile % across) * 4
        a0 = _row(word_ptr, at, quarter * 4, 0, words, w, inside)
        a1 = _row(word_ptr, at, quarter * 4, 16, words, w, inside)
        a2 = _row(word_ptr, at, quarter * 4, 1, words, w, inside)
        a3 = _row(word_ptr, at, quarter * 4, 17, words, w, inside)
        a4 = _row(word_ptr, at, quarter * 4, 2, words, w, inside)
        a5 = _row(word_ptr, at, quarter * 4, 18, words, w, inside)
        a6 = _row(word_ptr, at, quarter * 4, 3, words, w, inside)
        a7 = _row(word_ptr, at, quarter * 4, 19, words, w, inside)
    else:
        words = across * 8
        at = band * (16 * words) + (tile % across) * 8
        column = tl.arange(0, 8)
        a0, a2 = _split_row(word_ptr, at, quarter * 2, 0, words, column, inside, TILES, 4)
        a4, a6 = _split_row(word_ptr, at, quarter * 2, 1, words, column, inside, TILES, 4)
        a1, a3 = _split_row(word_ptr, at, quarter * 2, 8, words, column, inside, TILES, 4)
        a5, a7 = _split_row(word_ptr, at, quarter * 2, 9, words, column, inside, TILES, 4)
    d0, d1, d2, d3, d4, d5, d6, d7 = _transposed_nibbles(a0, a1, a2, a3, a4, a5, a6, a7)
    to = tile.to(tl.int64) * 128
    place = (quarter[:, None] * 4 + w[None, :])[None, :, :]
    # AWQ's nibble k is column 2 * (k % 4) + k // 4.
    _store(out_ptr, to, 0, place, inside, d0)
    _store(out_ptr, to, 16, place, inside, d4)
    _store(out_ptr, to, 32, place, inside, d1)
    _store(out_ptr, to, 48, place, inside, d5)
    _store(out_ptr, to, 64, place, inside, d2)
    _store(out_ptr, to, 80, place, inside, d6)
    _store(out_ptr, to, 96, place, inside, d3)
    _store(out_ptr, to, 112, place, inside, d7)


@triton.jit
def _joined(x, y, TILES: tl.constexpr):
    return tl.reshape(tl.join(x, y), [TILES, 4, 8])


@triton.jit
def _repack_bytes(word_ptr, out_ptr, tiles, across, ACTIVATIONS_8: tl.constexpr, TILES: tl.constexpr):
    """The same of 8-bit codes."""
    tile = tl.program_id(0) * TILES + tl.arange(0, TILES)
    inside = tile < tiles
    band = (tile // across).to(tl.int64)
    quarter, w = tl.arange(0, 4), tl.arange(0, 8)
    if ACTIVATIONS_8:
        words = across * 8
        at = band * (32 * words) + (tile % across) * 8
        a0, b0 = _split_row(word_ptr, at, quarter * 4, 0, words, w, inside, TILES, 4)
        a1, b1 = _split_row(word_ptr, at, quarter * 4, 1, words, w, inside, TILES, 4)
        a2, b2 = _split_row(word_ptr, at, quarter * 4, 2, words, w, inside, TILES, 4)
        a3, b3 = _split_row(word_ptr, at, quarter * 4, 3, words, w, inside, TILES, 4)
        c0, d0 = _split_row(word_ptr, at, quarter * 4, 16, words, w, inside, TILES, 4)
        c1, d1 = _split_row(word_ptr, at, quarter * 4, 17, words, w, inside, TILES, 4)
        c2, d2 = _split_row(word_ptr, at, quarter * 4, 18, words, w, inside, TILES, 4)
        c3, d3 = _split_row(word_ptr, at, quarter * 4, 19, words, w, inside, TILES, 4)
        a0, a1, a2, a3 = _transposed_bytes(a0, a1, a2, a3)
        b0, b1, b2, b3 = _transposed_bytes(b0, b1, b2, b3)
        c0, c1, c2, c3 = _transposed_bytes(c0, c1, c2, c3)
        d0, d1, d2, d3 = _transposed_bytes(d0, d1, d2, d3)
        e0, e1, e2, e3 = _joined(a0, c0, TILES), _joined(a1, c1, TILES), _joined(a2, c2, TILES), _joined(a3, c3, TILES)
        f0, f1, f2, f3 = _joined(b0, d0, TILES), _joined(b1, d1, TILES), _joined(b2, d2, TILES), _joined(b3, d3, TILES)
    else:
        words = across * 16
        at = band * (16 * words) + (tile % across) * 16
        column = tl.arange(0, 16)
        e0, f0 = _split_row(word_ptr, at, quarter * 2, 0, words, column, inside, TILES, 8)
        e1, f1 = _split_row(word_ptr, at, quarter * 2, 8, words, column, inside, TILES, 8)
        e2, f2 = _split_row(word_ptr, at, quarter * 2, 1, words, column, inside, TILES, 8)
        e3, f3 = _split_row(word_ptr, at, quarter * 2, 9, words, column, inside, TILES, 8)
        e0, e1, e2, e3 = _transposed_bytes(e0, e1, e2, e3)
        f0, f1, f2, f3 = _transposed_bytes(f0, f1, f2, f3)
    to = tile.to(tl.int64) * 256
    place = (quarter[:, None] * 8 + w[None, :])[None, :, :]
    # AWQ's byte k is column 2 * (k % 2) + k // 2.
    _store(out_ptr, to, 0, place, inside, e0)
    _store(out_ptr, to, 32, place, inside, e2)
    _store(out_ptr, to, 64, place, inside, e1)
    _store(out_ptr, to, 96, place, inside, e3)
    _store(out_ptr, to, 128, place, inside, f0)
    _store(out_ptr, to, 160, place, inside, f2)
    _store(out_ptr, to, 192, place, inside, f1)
    _store(out_ptr, to, 224, place, inside, f3)


def awq_marlin_moe_repack(b_q_weight, perm, size_k, size_n, num_bits, is_a_8bit):
    """b_q_weight: int32 (experts, size_k, size_n * num_bits / 32)."""
    experts = b_q_weight.shape[0]
    shape = (experts, size_k // 16, size_n * num_bits // 2)
    out = torch.empty(shape, dtype=b_q_weight.dtype, device=b_q_weight.device)
    if out.numel() == 0:
        return out
    down, across = (size_k // 32, size_n // 32) if is_a_8bit else (size_k // 16, size_n // 64)
    tiles = experts * down * across
    repack, held = (_repack_nibbles, 32) if num_bits == 4 else (_repack_bytes, 16)
    repack[(triton.cdiv(tiles, held),)](
        b_q_weight, out, tiles, across, ACTIVATIONS_8=bool(is_a_8bit), TILES=held, num_warps=4
    )
    return out
