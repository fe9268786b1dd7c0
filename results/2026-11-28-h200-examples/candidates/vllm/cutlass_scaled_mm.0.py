"""cutlass_scaled_mm: int8 or float8_e4m3fn matrices multiplied on tensor cores, then scaled by row and by column.

Larger products load their operands by tensor descriptors, which the hardware copies without threads; small or oddly
aligned ones by pointers. Integers are summed exactly in int32.
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
    rest = tl.program_id(0) - band * 8 * across
    return band * 8 + rest % height, rest // height


@triton.jit
def _store(
    out_ptr, total, a_scale_ptr, b_scale_ptr, bias_ptr, tile_row, tile_column, rows, columns, out_row,
    a_scale_step, b_scale_step,
    BIASED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    row = tile_row * ROWS + tl.arange(0, ROWS)
    column = tile_column * COLUMNS + tl.arange(0, COLUMNS)
    a_scale = tl.load(a_scale_ptr + row * a_scale_step, mask=row < rows, other=0.0)
    b_scale = tl.load(b_scale_ptr + column * b_scale_step, mask=column < columns, other=0.0)
    result = a_scale[:, None] * (total.to(tl.float32) * b_scale[None, :])
    if BIASED:
        result += tl.load(bias_ptr + column, mask=column < columns, other=0.0).to(tl.float32)[None, :]
    at = out_ptr + row.to(tl.int64)[:, None] * out_row + column[None, :]
    tl.store(at, result.to(out_ptr.dtype.element_ty), mask=(row < rows)[:, None] & (column < columns)[None, :])


@triton.jit
def _mm_descriptors(
    a_descriptor, b_descriptor, out_ptr, a_scale_ptr, b_scale_ptr, bias_ptr, rows, columns, depth, out_row,
    a_scale_step, b_scale_step,
    BIASED: tl.constexpr, INTEGER: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    tile_row, tile_column = _place(rows, columns, ROWS, COLUMNS)
    kind: tl.constexpr = tl.int32 if INTEGER else tl.float32
    total = tl.zeros((ROWS, COLUMNS), dtype=kind)
    for start in range(0, depth, DEPTH):
        a = a_descriptor.load([tile_row * ROWS, start])
        b = b_descriptor.load([tile_column * COLUMNS, start])
        total = tl.dot(a, b.T, total, out_dtype=kind)
    _store(
        out_ptr, total, a_scale_ptr, b_scale_ptr, bias_ptr, tile_row, tile_column, rows, columns, out_row,
        a_scale_step, b_scale_step, BIASED, ROWS, COLUMNS,
    )  # fmt: skip


@triton.jit
def _mm_pointers(
    a_ptr, b_ptr, out_ptr, a_scale_ptr, b_scale_ptr, bias_ptr, rows, columns, depth, a_row, b_column, out_row,
    a_scale_step, b_scale_step,
    BIASED: tl.constexpr, INTEGER: tl.constexpr, EVEN: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """EVEN: the depth is a multiple of DEPTH."""
    tile_row, tile_column = _place(rows, columns, ROWS, COLUMNS)
    row = tile_row * ROWS + tl.arange(0, ROWS)
    column = tile_column * COLUMNS + tl.arange(0, COLUMNS)
    step = tl.arange(0, DEPTH)
    a_at = a_ptr + (row.to(tl.int64) * a_row)[:, None] + step[None, :]
    b_at = b_ptr + (column.to(tl.int64) * b_column)[None, :] + step[:, None]
    kind: tl.constexpr = tl.int32 if INTEGER else tl.float32
    zero: tl.constexpr = 0 if INTEGER else 0.0
    total = tl.zeros((ROWS, COLUMNS), dtype=kind)
    for start in range(0, depth, DEPTH):
        a_inside, b_inside = (row < rows)[:, None], (column < columns)[None, :]
        if not EVEN:
            a_inside = a_inside & (step < depth - start)[None, :]
            b_inside = b_inside & (step < depth - start)[:, None]
        a = tl.load(a_at, mask=a_inside, other=zero)
        b = tl.load(b_at, mask=b_inside, other=zero)
        total = tl.dot(a, b, total, out_dtype=kind)
        a_at += DEPTH
        b_at += DEPTH
    _store(
        out_ptr, total, a_scale_ptr, b_scale_ptr, bias_ptr, tile_row, tile_column, rows, columns, out_row,
        a_scale_step, b_scale_step, BIASED, ROWS, COLUMNS,
    )  # fmt: skip


def _scaled_mm(out, a, b, a_scales, b_scales, bias, integer):
    rows, depth = a.shape
    columns = b.shape[1]
    if rows == 0 or columns == 0:
        return
    a_row = a.stride(0) if rows > 1 else depth
    b_column = b.stride(1) if columns > 1 else depth
    operands = (out, a_scales, b_scales, bias, rows, columns, depth)
    steps = (out.stride(0) if rows > 1 else columns, int(a_scales.numel() > 1), int(b_scales.numel() > 1))
    kinds = {"BIASED": bias is not None, "INTEGER": integer}
    aligned = all(each % 16 == 0 for each in (a.data_ptr(), b.data_ptr(), a_row, b_column))
    if a.is_cuda and aligned and rows > 64 and depth >= 128:
        if rows <= 128:
            # Few rows: one wide tile for each multiprocessor, with many bytes on their way, or tiles of 64 columns.
            tile, warps, stages = ((128, 128), 8, 6) if columns >= 128 * 100 else ((128, 64), 4, 4)
        else:
            large = triton.cdiv(rows, 128) * triton.cdiv(columns, 256) >= 120
            tile, warps, stages = (128, 256 if large else 128), 8, 4
        _mm_descriptors[(triton.cdiv(rows, tile[0]) * triton.cdiv(columns, tile[1]),)](
            TensorDescriptor(a, [rows, depth], [a_row, 1], [tile[0], 128]),
            TensorDescriptor(b, [columns, depth], [b_column, 1], [tile[1], 128]),
            *operands, *steps, **kinds, ROWS=tile[0], COLUMNS=tile[1], DEPTH=128, num_warps=warps, num_stages=stages,
        )  # fmt: skip
        return
    if rows <= 64:
        height = 16 if integer and rows <= 16 else 32 if integer and rows <= 32 else 64
        width, step, stages, warps = (64, 128, 6, 4) if columns >= 64 * 120 else (32, 256, 7, 4)
    else:
        height, width, step, stages, warps = 128, 128, 64, 3, 8
    if depth < step:
        step = 64 if depth >= 64 else 32
    _mm_pointers[(triton.cdiv(rows, height) * triton.cdiv(columns, width),)](
        a, b, *operands, a_row, b_column, *steps, **kinds, EVEN=depth % step == 0,
        ROWS=height, COLUMNS=width, DEPTH=step, num_warps=warps, num_stages=stages,
    )  # fmt: skip


def cutlass_scaled_mm_int8(out, a, b, a_scales, b_scales, bias):
    """a: (rows, depth) int8, b: (depth, columns) stored by columns; a_scales: one or one a row, b_scales: a column."""
    _scaled_mm(out, a, b, a_scales, b_scales, bias, True)


def cutlass_scaled_mm_fp8(out, a, b, a_scales, b_scales, bias):
    """The same with a and b of float8_e4m3fn."""
    _scaled_mm(out, a, b, a_scales, b_scales, bias, False)
