"""awq_gemm: 16-bit rows times a matrix of 4-bit codes, unpacked on the way to the matrix units.

Where the result has too few tiles for the GPU, k is cut into parts, whose sums go to scratch memory in float32 and are
added up by a second kernel, always in the same order. split_k_iters does not count.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _codes(word, SHAPE: tl.constexpr):
    """1024 + the codes of words as float16, eight neighbours a word: column c has its nibble 4 * (c % 2) + c // 2."""
    word = tl.join(word, word >> 8)
    word = tl.join(word, word >> 4)
    word = tl.join(word, word >> 16)
    # 0x6400 is 1024, whose last bit counts 1: no conversion is needed.
    return ((tl.reshape(word, SHAPE) & 15) | 0x6400).to(tl.int16).to(tl.float16, bitcast=True)


@triton.jit
def _gemm(
    x_ptr, w_ptr, scale_ptr, zero_ptr, out_ptr, m, n, words, k, group, part,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """A tile of the result, or SPLIT: of its sum over ``part`` of k; words: n / 8.

    DEPTH divides the size of a group, so that a step has one row of scales.
    """
    down = tl.cdiv(m, ROWS)
    tile_row, tile_column = tl.program_id(0) % down, tl.program_id(0) // down
    row = tile_row * ROWS + tl.arange(0, ROWS)
    column = tile_column * COLUMNS + tl.arange(0, COLUMNS)
    word = tile_column * (COLUMNS // 8) + tl.arange(0, COLUMNS // 8)
    x_at = x_ptr + row.to(tl.int64)[:, None] * k
    begin = tl.program_id(1) * part
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(begin, tl.minimum(begin + part, k), DEPTH):
        r = first + tl.arange(0, DEPTH)
        x = tl.load(x_at + r[None, :], mask=(row < m)[:, None], other=0.0)
        w_at = w_ptr + r.to(tl.int64)[:, None] * words + word[None, :]
        w = tl.load(w_at, mask=(word < words)[None, :], other=0)
        zero = tl.load(zero_ptr + first // group * words + word, mask=word < words, other=0)
        scale = tl.load(scale_ptr + first // group * n + column, mask=column < n, other=0.0)
        code = _codes(w, (DEPTH, COLUMNS)) - _codes(zero, (COLUMNS,))[None, :]
        total = tl.dot(x, code * scale[None, :], total)
    # The parts' sums lie one below the other.
    line = row + tl.program_id(1) * m if SPLIT else row
    at = out_ptr + line.to(tl.int64)[:, None] * n + column[None, :]
    tl.store(at, total.to(out_ptr.dtype.element_ty), mask=(row < m)[:, None] & (column < n)[None, :])


@triton.jit
def _add_parts(sum_ptr, out_ptr, parts, size, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """out (size) = the sum of ``parts`` rows; PARTS is ``parts``, rounded up to a power of 2."""
    part = tl.arange(0, PARTS)
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    at = sum_ptr + (part.to(tl.int64) * size)[:, None] + i[None, :]
    sums = tl.load(at, mask=(part < parts)[:, None] & (i < size)[None, :], other=0.0)
    tl.store(out_ptr + i, tl.sum(sums, axis=0).to(out_ptr.dtype.element_ty), mask=i < size)


def _tiles(m):
    """Rows and columns of a tile, warps, stages, and how many programs the GPU should have."""
    # With few rows the loop over k waits for memory: several small programs share a multiprocessor.
    if m <= 16:
        return 16, 64, 4, 4, 704
    if m <= 32:
        return 32, 64, 4, 4, 528
    return (64, 64, 4, 4, 396) if m <= 64 else (128, 128, 8, 3, 132)


def awq_gemm(in_feats, kernel, scaling_factors, zeros, split_k_iters):
    """in_feats: (m, k), float16; kernel: (k, n / 8), int32; scaling_factors: (groups, n); zeros: (groups, n / 8)."""
    (m, k), n = in_feats.shape, scaling_factors.shape[1]
    out = torch.empty((m, n), dtype=in_feats.dtype, device=in_feats.device)
    if out.numel() == 0 or k == 0:
        return out.zero_()
    group = k // scaling_factors.shape[0]
    depth = 64 if group % 64 == 0 else 32
    rows, columns, warps, stages, programs = _tiles(m)
    tiles = triton.cdiv(m, rows) * triton.cdiv(n, columns)
    parts = max(1, min(16, programs // tiles, k // (4 * depth)))
    part = triton.cdiv(triton.cdiv(k, parts), depth) * depth
    parts = triton.cdiv(k, part)
    sums = torch.empty((parts, m, n), dtype=torch.float32, device=out.device) if parts > 1 else out
    _gemm[(tiles, parts)](
        in_feats, kernel, scaling_factors, zeros, sums, m, n, n // 8, k, group, part,
        ROWS=rows, COLUMNS=columns, DEPTH=depth, SPLIT=parts > 1, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    if parts > 1:
        block = 256 if m * n >= 65536 else 64
        _add_parts[(triton.cdiv(m * n, block),)](
            sums, out, parts, m * n,
            PARTS=triton.next_power_of_2(parts), BLOCK=block, num_warps=4 if block == 256 else 2,
        )  # fmt: skip
    return out
