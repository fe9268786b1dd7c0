"""allspark_w8a16_gemm: a of 16-bit floats times 8-bit weights in AllSpark's order, scaled by column.

Weights lie as [column // 32][column % 8] lines of words, a word having rows r, r + 1, r + 8 and r + 9 of 16. One row
is a vector times a matrix; otherwise the words are turned into a tile of weights on chip for the tensor cores. Where
there are too few tiles, the depth is cut into parts, which a second kernel adds up.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _float(code, BIAS: tl.constexpr):
    """code - BIAS: the bits of 2^23 + code are those of 2^23 with the code below."""
    return (code | 0x4B000000).to(tl.float32, bitcast=True) - (8388608.0 + BIAS)


@triton.jit
def _vector(
    a_ptr, word_ptr, scale_ptr, zero_ptr, out_ptr, n, depth, lines,
    ZEROS: tl.constexpr, LINES: tl.constexpr, WORDS: tl.constexpr,
):  # fmt: skip
    """LINES lines of words, each with the four columns ``4 * line`` to ``4 * line + 3`` of the scales' order."""
    line = tl.program_id(0) * LINES + tl.arange(0, LINES)
    part = tl.arange(0, 4)
    place = line[:, None] * 4 + part[None, :]
    inside = (line < lines)[:, None] & (part < 4)[None, :]
    words = word_ptr + (line.to(tl.int64) * depth)[:, None, None] + part[None, None, :]
    total = tl.zeros([LINES, WORDS, 4], tl.float32)
    zero = tl.zeros([LINES, 4], tl.float32)
    if ZEROS:
        zero = tl.load(zero_ptr + place, mask=inside, other=0.0).to(tl.float32)
    zero = zero[:, None, :]
    for start in range(0, depth // 4, WORDS):
        t = start + tl.arange(0, WORDS)
        live = t < depth // 4
        word = tl.load(words + t[None, :, None] * 4, mask=(line < lines)[:, None, None] & live[None, :, None], other=0)
        row = (t // 4) * 16 + (t % 4) * 2
        # The second and fourth code are left in their place, 256 times as large.
        a0 = tl.load(a_ptr + row, mask=live, other=0.0).to(tl.float32)
        a1 = tl.load(a_ptr + row + 1, mask=live, other=0.0).to(tl.float32) * 0.00390625
        a2 = tl.load(a_ptr + row + 8, mask=live, other=0.0).to(tl.float32)
        a3 = tl.load(a_ptr + row + 9, mask=live, other=0.0).to(tl.float32) * 0.00390625
        high = word >> 16
        total += (_float(word & 0xFF, 128.0) - zero) * a0[None, :, None]
        total += (_float(word & 0xFF00, 32768.0) - zero * 256.0) * a1[None, :, None]
        total += (_float(high & 0xFF, 128.0) - zero) * a2[None, :, None]
        total += (_float(high & 0xFF00, 32768.0) - zero * 256.0) * a3[None, :, None]
    result = tl.sum(total, axis=1) * tl.load(scale_ptr + place, mask=inside, other=0.0).to(tl.float32)
    column = (line // 8)[:, None] * 32 + part[None, :] * 8 + (line % 8)[:, None]
    tl.store(out_ptr + column, result.to(out_ptr.dtype.element_ty), mask=inside & (column < n))


@triton.jit
def _matrix(
    a_ptr, word_ptr, scale_ptr, zero_ptr, out_ptr, rows, n, depth, lines, part,
    SPLIT: tl.constexpr, ZEROS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of the result; SPLIT: of its sums over ``part`` of the depth, in float32."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down = (rows - 1) // ROWS + 1
    share = tl.program_id(1)
    tile = tl.program_id(0) // down
    line = tile * (COLUMNS // 4) + tl.arange(0, COLUMNS // 4)
    row = tl.program_id(0) % down * ROWS + tl.arange(0, ROWS)
    place = tile * COLUMNS + tl.arange(0, COLUMNS)
    real = place < lines * 4
    a_at = a_ptr + row.to(tl.int64)[:, None] * depth
    words = word_ptr + line.to(tl.int64)[:, None] * depth
    end = tl.minimum(share * part + part, depth)
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    if ZEROS:
        zero = tl.load(zero_ptr + place, mask=real, other=0.0)
    for start in range(share * part, end, DEPTH):
        k = start + tl.arange(0, DEPTH)
        a = tl.load(a_at + k[None, :], mask=(row < rows)[:, None] & (k < end)[None, :], other=0.0)
        word = tl.load(words + k[None, :], mask=(line < lines)[:, None] & (k < end)[None, :], other=0)
        low = tl.join(word & 0xFF, (word >> 8) & 0xFF)
        high = tl.join((word >> 16) & 0xFF, (word >> 24) & 0xFF)
        # (line, 16 rows, word of them, column of a line, code // 1, code // 2) to (columns, rows).
        code = tl.reshape(tl.join(low, high), (COLUMNS // 4, DEPTH // 16, 4, 4, 2, 2))
        code = tl.reshape(tl.permute(code, (0, 3, 1, 5, 2, 4)), (COLUMNS, DEPTH))
        if a.dtype.is_fp16():
            # 1024 + code has the bits of 1024 with the code below.
            weight = (code | 0x6400).to(tl.int16).to(tl.float16, bitcast=True) - 1152.0
            if ZEROS:
                weight = weight - zero[:, None]
        else:
            weight = _float(code, 128.0)
            if ZEROS:
                weight = weight - zero.to(tl.float32)[:, None]
        total = tl.dot(a, tl.trans(weight.to(a.dtype)), total)
    total = total * tl.load(scale_ptr + place, mask=real, other=0.0).to(tl.float32)[None, :]
    line = place // 4
    column = (line // 8) * 32 + (place % 4) * 8 + line % 8
    out_row = (share * rows + row if SPLIT else row).to(tl.int64)
    inside = (row < rows)[:, None] & (real & (column < n))[None, :]
    tl.store(out_ptr + out_row[:, None] * n + column[None, :], total.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _add_parts(part_ptr, out_ptr, count, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    part = tl.arange(0, PARTS)
    at = part_ptr + (part.to(tl.int64) * n)[:, None] + i[None, :]
    total = tl.sum(tl.load(at, mask=(part < count)[:, None] & (i < n)[None, :], other=0.0), axis=0)
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=i < n)


def allspark_w8a16_gemm(
    a, b_qweight, b_scales, b_qzeros, n, group_size, sm_count, sm_version, CUBLAS_M_THRESHOLD, has_zp, n32k16_reorder
):
    """a: (rows, depth), float16 or bfloat16; b_qweight: uint8; b_scales, b_qzeros: one a column, ordered as it is."""
    rows, depth = a.shape
    out = torch.empty((rows, n), dtype=a.dtype, device=a.device)
    if rows == 0 or n == 0:
        return out
    if depth == 0:
        return out.fill_(0)
    a = a.contiguous()
    lines = triton.cdiv(n, 32) * 8
    codes = b_qweight.reshape(-1)
    if codes.data_ptr() % 4 != 0 or codes.storage_offset() % 4 != 0:
        codes = codes.clone()
    operands = (a, codes.view(torch.int32), b_scales, b_qzeros)
    zeros = b_qzeros is not None
    if rows == 1:
        words = max(16, min(512, triton.next_power_of_2(depth // 4)))
        _vector[(triton.cdiv(lines, 2),)](
            *operands, out, n, depth, lines, ZEROS=zeros, LINES=2, WORDS=words, num_warps=4
        )
        return out
    height = max(16, min(128, triton.next_power_of_2(rows)))
    width, warps = (64, 4) if rows <= 128 else (128, 8)
    step = 128 if rows <= 32 else 64
    tiles = triton.cdiv(rows, height) * triton.cdiv(4 * lines, width)
    parts = max(1, min(16, 200 // tiles, depth // (4 * step))) if tiles < 100 else 1
    part = triton.cdiv(triton.cdiv(depth, parts), step) * step
    parts = triton.cdiv(depth, part)
    sums = torch.empty((parts, rows, n), dtype=torch.float32, device=a.device) if parts > 1 else out
    _matrix[(tiles, parts)](
        *operands, sums, rows, n, depth, lines, part, SPLIT=parts > 1, ZEROS=zeros, ROWS=height, COLUMNS=width,
        DEPTH=step, num_warps=warps, num_stages=4 if 32 < rows <= 128 else 3,
    )  # fmt: skip
    if parts > 1:
        _add_parts[(triton.cdiv(rows * n, 256),)](
            sums, out, parts, rows * n, PARTS=triton.next_power_of_2(parts), BLOCK=256, num_warps=4
        )
    return out
