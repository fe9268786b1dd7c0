"""gptq_marlin_24_gemm: a times weights of which two of four are not zero, in Marlin's order, 4 or 8 bits each.

Words of codes lie as [depth / 32][column / 8][t < 4][w < 4], for 8 bits with one more index h < 2 behind. With
quadruple 8 * (depth / 32) + 4 * q + t and column 8 * c + 4 * h + w, the two codes of a quadruple are nibbles 2 * h + q
and 4 + 2 * h + q, or bytes q and 2 + q; four bits of the metadata say which two rows of the quadruple they are.

One row of a is multiplied code by code; otherwise quadruples are filled up with zeros on chip for the tensor cores.
The depth is cut into parts where there are too few tiles.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _codes(word, Q: tl.constexpr, H: tl.constexpr, BYTES: tl.constexpr):
    """Both codes of a quadruple, less their bias."""
    if BYTES:
        return ((word >> (8 * Q)) & 255) - 128, ((word >> (16 + 8 * Q)) & 255) - 128
    else:
        return ((word >> (8 * H + 4 * Q)) & 15) - 8, ((word >> (16 + 8 * H + 4 * Q)) & 15) - 8


@triton.jit
def _meta_place(c, w):
    return 64 * (c // 8) + 32 * (w // 2) + 4 * (c % 8) + 2 * (w % 2)


@triton.jit
def _vector(
    a_ptr, word_ptr, meta_ptr, scale_ptr, sum_ptr, n, blocks, per_group, part,
    GROUPED: tl.constexpr, BYTES: tl.constexpr, COLUMNS: tl.constexpr, BLOCKS: tl.constexpr,
):  # fmt: skip
    """COLUMNS times eight columns, ``part`` blocks of 32 of the depth, BLOCKS at a time."""
    c = (tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS))[None, :, None, None]
    t = tl.arange(0, 4)[None, None, :, None]
    w = tl.arange(0, 4)[None, None, None, :]
    share = tl.program_id(1)
    lower = tl.zeros([BLOCKS, COLUMNS, 4, 4], tl.float32)
    upper = tl.zeros([BLOCKS, COLUMNS, 4, 4], tl.float32)
    for start in range(share * part, tl.minimum(share * part + part, blocks), BLOCKS):
        block = (start + tl.arange(0, BLOCKS))[:, None, None, None]
        line = block.to(tl.int64)
        for h in tl.static_range(2):
            place = 2 * w + h if GROUPED else 4 * h + w
            scale = tl.load(scale_ptr + (block // per_group) * n + c * 8 + place).to(tl.float32)
            if BYTES:
                word = tl.load(word_ptr + (line * (4 * n) + c * 32 + t * 8 + w * 2 + h))
            else:
                word = tl.load(word_ptr + (line * (2 * n) + c * 16 + t * 4 + w))
            for q in tl.static_range(2):
                meta = tl.load(meta_ptr + (line * n + _meta_place(c, w)) + q)
                pair = (meta >> (16 * h + 4 * t)) & 15
                quadruple = a_ptr + ((8 * block + t) * 4 + 16 * q)
                first, second = _codes(word, q, h, BYTES)
                products = tl.load(quadruple + (pair & 3)).to(tl.float32) * first.to(tl.float32)
                products += tl.load(quadruple + (pair >> 2)).to(tl.float32) * second.to(tl.float32)
                if h == 0:
                    lower += products * scale
                else:
                    upper += products * scale
    column = (tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS))[:, None] * 8 + tl.arange(0, 4)[None, :]
    out = sum_ptr + share.to(tl.int64) * n + column
    tl.store(out, tl.sum(tl.sum(lower, axis=2), axis=0))
    tl.store(out + 4, tl.sum(tl.sum(upper, axis=2), axis=0))


@triton.jit
def _filled(word, meta, scale, t, Q: tl.constexpr, H: tl.constexpr, BYTES: tl.constexpr):
    """The four weights of each quadruple, as (…, row % 2, row // 2)."""
    pair = (meta >> (16 * H + 4 * t)) & 15
    first, second = _codes(word, Q, H, BYTES)
    first, second = first.to(tl.float16) * scale, second.to(tl.float16) * scale
    zero = tl.zeros_like(first)
    row0 = tl.where((pair & 3) == 0, first, tl.where((pair >> 2) == 0, second, zero))
    row1 = tl.where((pair & 3) == 1, first, tl.where((pair >> 2) == 1, second, zero))
    row2 = tl.where((pair & 3) == 2, first, tl.where((pair >> 2) == 2, second, zero))
    row3 = tl.where((pair & 3) == 3, first, tl.where((pair >> 2) == 3, second, zero))
    return tl.join(tl.join(row0, row1), tl.join(row2, row3))


@triton.jit
def _matrix(
    a_ptr, word_ptr, meta_ptr, scale_ptr, out_ptr, rows, n, depth, per_group, part,
    GROUPED: tl.constexpr, BYTES: tl.constexpr, SPLIT: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile of the result; SPLIT: of its sums over ``part`` blocks of 32 of the depth, in float32."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down = (rows - 1) // ROWS + 1
    tile, share = tl.program_id(0) // down, tl.program_id(1)
    row = tl.program_id(0) % down * ROWS + tl.arange(0, ROWS)
    a_at = a_ptr + row.to(tl.int64)[:, None] * depth
    blocks = tl.arange(0, DEPTH // 32)[:, None, None, None]
    c = (tile * (COLUMNS // 8) + tl.arange(0, COLUMNS // 8))[None, :, None, None]
    t = tl.arange(0, 4)[None, None, :, None]
    w = tl.arange(0, 4)[None, None, None, :]
    total = tl.zeros([ROWS, COLUMNS], tl.float32)
    for start in range(share * part, tl.minimum(share * part + part, depth // 32), DEPTH // 32):
        k = start * 32 + tl.arange(0, DEPTH)
        a = tl.load(a_at + k[None, :], mask=(row < rows)[:, None], other=0.0)
        line = (start + blocks).to(tl.int64)
        # Metadata and scales are loaded for each t, as many as there are words.
        meta_at = meta_ptr + (line * n + _meta_place(c, w) + 0 * t)
        meta0, meta1 = tl.load(meta_at), tl.load(meta_at + 1)
        scale_at = scale_ptr + ((start + blocks) // per_group * n + c * 8 + 0 * t)
        scale0 = tl.load(scale_at + (2 * w if GROUPED else w))
        scale1 = tl.load(scale_at + (2 * w + 1 if GROUPED else 4 + w))
        if BYTES:
            words = word_ptr + (line * (4 * n) + c * 32 + t * 8 + w * 2)
            word0, word1 = tl.load(words), tl.load(words + 1)
        else:
            word0 = tl.load(word_ptr + (line * (2 * n) + c * 16 + t * 4 + w))
            word1 = word0
        q0 = tl.join(_filled(word0, meta0, scale0, t, 0, 0, BYTES), _filled(word1, meta0, scale1, t, 0, 1, BYTES))
        q1 = tl.join(_filled(word0, meta1, scale0, t, 1, 0, BYTES), _filled(word1, meta1, scale1, t, 1, 1, BYTES))
        # (block, c, t, w, row % 2, row // 2, h, q) to (depth, columns)
        weight = tl.permute(tl.join(q0, q1), (0, 7, 2, 5, 4, 1, 6, 3))
        total = tl.dot(a, tl.reshape(weight, (DEPTH, COLUMNS)), total)
    column = tile * COLUMNS + tl.arange(0, COLUMNS)
    out_row = (share * rows + row if SPLIT else row).to(tl.int64)
    inside = (row < rows)[:, None] & (column < n)[None, :]
    tl.store(out_ptr + out_row[:, None] * n + column[None, :], total.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _add_parts(part_ptr, out_ptr, count, n, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    part = tl.arange(0, PARTS)
    at = part_ptr + (part.to(tl.int64) * n)[:, None] + i[None, :]
    total = tl.sum(tl.load(at, mask=(part < count)[:, None] & (i < n)[None, :], other=0.0), axis=0)
    tl.store(out_ptr + i, total.to(out_ptr.dtype.element_ty), mask=i < n)


_UINT8B128 = 1125899923621888
"""vLLM's number of the type of 8 bits with a bias of 128."""


def gptq_marlin_24_gemm(a, b_q_weight, b_meta, b_scales, workspace, b_q_type, size_m, size_n, size_k):
    """a: (size_m, size_k) float16; b_scales: (groups, size_n). Returns (size_m, size_n)."""
    rows, n, depth = size_m, size_n, size_k
    out = torch.empty((rows, n), dtype=a.dtype, device=a.device)
    if rows == 0 or n == 0:
        return out
    if depth == 0:
        return out.fill_(0)
    meta = b_meta.reshape(-1)
    if meta.data_ptr() % 4 != 0 or meta.storage_offset() % 2 != 0:
        meta = meta.clone()
    operands = (a.contiguous(), b_q_weight.contiguous(), meta.view(torch.int32), b_scales.contiguous())
    groups, blocks = b_scales.shape[0], depth // 32
    kinds = {"GROUPED": groups > 1, "BYTES": b_q_type == _UINT8B128}
    if rows == 1:
        parts = max(1, min(64, triton.cdiv(1024, n // 64), blocks // 4))
        part = triton.cdiv(blocks // 4, parts) * 4
        parts = triton.cdiv(blocks, part)
        sums = torch.empty((parts, n), dtype=torch.float32, device=a.device)
        _vector[(n // 64, parts)](
            *operands, sums, n, blocks, blocks // groups, part, **kinds, COLUMNS=8, BLOCKS=4, num_warps=4
        )
        block = 64
    else:
        height = 128 if rows > 64 else max(16, triton.next_power_of_2(rows))
        width, step = 128 if rows > 64 else 64, 128 if rows <= 32 else 64
        tiles = triton.cdiv(rows, height) * triton.cdiv(n, width)
        parts = max(1, min(16, (132 if rows > 64 else 264) // tiles, blocks * 8 // step))
        part = triton.cdiv(triton.cdiv(blocks, parts), step // 32) * (step // 32)
        parts = triton.cdiv(blocks, part)
        sums = torch.empty((parts, rows, n), dtype=torch.float32, device=a.device) if parts > 1 else out
        _matrix[(tiles, parts)](
            *operands, sums, rows, n, depth, blocks // groups, part, **kinds, SPLIT=parts > 1,
            ROWS=height, COLUMNS=width, DEPTH=step, num_warps=8 if rows > 64 else 4, num_stages=3,
        )  # fmt: skip
        if parts == 1:
            return out
        block = 256
    _add_parts[(triton.cdiv(rows * n, block),)](
        sums, out, parts, rows * n, PARTS=triton.next_power_of_2(parts), BLOCK=block, num_warps=4
    )
    return out
