"""cutlass_scaled_mm_azp: int8 matrices multiplied on tensor cores, less a's zero points, scaled by row and column.

One row is a vector times a matrix. Other products load their operands by tensor descriptors where they are large and
aligned, otherwise by pointers.
"""

import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _place(rows, columns, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Row and column of this program's tile, in bands of 8 rows: tiles of one time share operands in the cache."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (rows - 1) // ROWS + 1, (columns - 1) // COLUMNS + 1
    band = tl.program_id(0) // (8 * across)
    height = tl.minimum(down - band * 8, 8)
    rest = tl.program_id(0) % (8 * across)
    return band * 8 + rest % height, rest // height


@triton.jit
def _store(
    total, out_ptr, a_scale_ptr, b_scale_ptr, adjustment_ptr, zero_ptr, bias_ptr, row, column, rows, columns,
    out_row, a_scale_step, b_scale_step, zero_step,
    BY_ROW: tl.constexpr, BIASED: tl.constexpr,
):  # fmt: skip
    """BY_ROW: the adjustments are sums of b's columns, to be multiplied by the zero point of each row."""
    a_scale = tl.load(a_scale_ptr + row * a_scale_step, mask=row < rows, other=0.0)
    b_scale = tl.load(b_scale_ptr + column * b_scale_step, mask=column < columns, other=0.0)
    adjustment = tl.load(adjustment_ptr + column, mask=column < columns, other=0)[None, :]
    if BY_ROW:
        adjustment = tl.load(zero_ptr + row * zero_step, mask=row < rows, other=0)[:, None] * adjustment
    result = (total - adjustment).to(tl.float32) * (a_scale[:, None] * b_scale[None, :])
    if BIASED:
        result += tl.load(bias_ptr + column, mask=column < columns, other=0.0).to(tl.float32)[None, :]
    at = out_ptr + row.to(tl.int64)[:, None] * out_row + column[None, :]
    tl.store(at, result.to(out_ptr.dtype.element_ty), mask=(row < rows)[:, None] & (column < columns)[None, :])


@triton.jit
def _vector(
    a_ptr, b_ptr, out_ptr, a_scale_ptr, b_scale_ptr, adjustment_ptr, zero_ptr, bias_ptr, columns, depth, b_column,
    b_scale_step,
    BY_ROW: tl.constexpr, BIASED: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    column = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    inside = column < columns
    b_at = b_ptr + column.to(tl.int64)[:, None] * b_column
    # What the end needs is asked for before the loop.
    adjustment = tl.load(adjustment_ptr + column, mask=inside, other=0)
    scale = tl.load(b_scale_ptr + column * b_scale_step, mask=inside, other=0.0) * tl.load(a_scale_ptr)
    if BY_ROW:
        adjustment = adjustment * tl.load(zero_ptr)
    if BIASED:
        bias = tl.load(bias_ptr + column, mask=inside, other=0.0).to(tl.float32)
    total = tl.zeros([COLUMNS], tl.int32)
    for start in range(0, depth, DEPTH):
        step = start + tl.arange(0, DEPTH)
        b = tl.load(b_at + step[None, :], mask=inside[:, None] & (step < depth)[None, :], other=0).to(tl.int32)
        a = tl.load(a_ptr + step, mask=step < depth, other=0).to(tl.int32)
        total += tl.sum(b * a[None, :], axis=1)
    result = (total - adjustment).to(tl.float32) * scale
    if BIASED:
        result += bias
    tl.store(out_ptr + column, result.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _mm(
    a, b, out_ptr, a_scale_ptr, b_scale_ptr, adjustment_ptr, zero_ptr, bias_ptr, rows, columns, depth,
    a_row, b_column, out_row, a_scale_step, b_scale_step, zero_step,
    DESCRIBED: tl.constexpr, BY_ROW: tl.constexpr, BIASED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """a, b: tensor descriptors with DESCRIBED, otherwise pointers."""
    tile_row, tile_column = _place(rows, columns, ROWS, COLUMNS)
    row = tile_row * ROWS + tl.arange(0, ROWS)
    column = tile_column * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros([ROWS, COLUMNS], tl.int32)
    for start in range(0, depth, DEPTH):
        if DESCRIBED:
            left = a.load([tile_row * ROWS, start])
            right = b.load([tile_column * COLUMNS, start]).T
        else:
            step = start + tl.arange(0, DEPTH)
            left_at = a + row.to(tl.int64)[:, None] * a_row + step[None, :]
            right_at = b + column.to(tl.int64)[None, :] * b_column + step[:, None]
            left = tl.load(left_at, mask=(row < rows)[:, None] & (step < depth)[None, :], other=0)
            right = tl.load(right_at, mask=(step < depth)[:, None] & (column < columns)[None, :], other=0)
        total = tl.dot(left, right, total, out_dtype=tl.int32)
    _store(
        total, out_ptr, a_scale_ptr, b_scale_ptr, adjustment_ptr, zero_ptr, bias_ptr, row, column, rows, columns,
        out_row, a_scale_step, b_scale_step, zero_step, BY_ROW, BIASED,
    )  # fmt: skip


def cutlass_scaled_mm_azp(out, a, b, a_scales, b_scales, azp_adj, azp, bias):
    """a: (rows, depth) int8, b: (depth, columns) int8 by columns; azp: one a row, or None where azp_adj has it.

    out = a_scales * b_scales * (a @ b - azp * azp_adj) + bias; scales: one, or one a row (a) or column (b).
    """
    rows, depth = a.shape
    columns = b.shape[1]
    if rows == 0 or columns == 0:
        return
    if depth > 0 and a.stride(1) != 1:
        a = a.contiguous()
    if depth > 1 and b.stride(0) != 1:
        b = b.t().contiguous().t()
    a_row, b_column = a.stride(0), b.stride(1)
    others = (out, a_scales, b_scales, azp_adj, azp, bias)
    b_scale_step = 0 if b_scales.numel() == 1 else b_scales.stride(1)
    kinds = {"BY_ROW": azp is not None, "BIASED": bias is not None}
    if rows == 1:
        step = max(64, min(2048, triton.next_power_of_2(depth)))
        _vector[(triton.cdiv(columns, 4),)](
            a, b, *others, columns, depth, b_column, b_scale_step, **kinds, COLUMNS=4, DEPTH=step, num_warps=4
        )
        return
    a_scale_step = 0 if a_scales.numel() == 1 else a_scales.stride(0)
    steps = (a_row, b_column, out.stride(0), a_scale_step, b_scale_step, 0 if azp is None else azp.stride(0))
    aligned = all(each % 16 == 0 for each in (a.data_ptr(), b.data_ptr(), a_row, b_column))
    described = a.is_cuda and aligned and (rows > 256 or 64 < rows <= 128) and columns >= 256 and depth >= 128
    if described:
        tile, warps, stages = (128, 256, 128), 8, 4
        if rows <= 128:
            tile, warps, stages = ((128, 128, 128), 8, 6) if columns >= 128 * 96 else ((128, 64, 128), 4, 6)
        a = TensorDescriptor(a, [rows, depth], [a_row, 1], [tile[0], tile[2]])
        b = TensorDescriptor(b.t(), [columns, depth], [b_column, 1], [tile[1], tile[2]])
    elif rows <= 128:
        height = max(16, triton.next_power_of_2(rows))
        tile, warps, stages = (height, 32 if height == 16 else 64, 256 if height == 16 else 128), 4, 4
    else:
        tile, warps, stages = (128, 128, 128), 8, 3
    _mm[(triton.cdiv(rows, tile[0]) * triton.cdiv(columns, tile[1]),)](
        a, b, *others, rows, columns, depth, *steps, DESCRIBED=described, **kinds,
        ROWS=tile[0], COLUMNS=tile[1], DEPTH=tile[2], num_warps=warps, num_stages=stages,
    )  # fmt: skip
