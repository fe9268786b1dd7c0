"""margin_ranking_loss: max(0, margin - target * (a - b)), each, or their mean or sum in two passes.

Numbers are float32 inside (float64 for float64); the last sums are float64.
"""

import math

import torch
import triton
import triton.language as tl

MEAN, TOTAL = 1, 2


@triton.jit
def _loss(a, b, target, margin):
    if a.dtype == tl.float64:
        margin = tl.load(margin)
    loss = margin - target * (a - b)
    # False for NaN, which stays.
    return tl.where(loss < 0.0, 0.0, loss)


@triton.jit
def _place(row, column, sizes, strides, DIMS: tl.constexpr):
    """Where elements lie: columns count through the last dimension, rows through the others."""
    at = column * strides[DIMS - 1]
    for back in tl.static_range(2, DIMS + 1):
        at += row % sizes[DIMS - back] * strides[DIMS - back]
        row = row // sizes[DIMS - back]
    return at


@triton.jit
def _tile(
    tile, a_ptr, b_ptr, target_ptr, margin, rows, n, sizes, a_strides, b_strides, target_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Losses of a tile, with their rows and columns and which of them there are."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tile // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    a = tl.load(a_ptr + _place(row, column, sizes, a_strides, DIMS), mask=inside, other=0).to(WIDE)
    b = tl.load(b_ptr + _place(row, column, sizes, b_strides, DIMS), mask=inside, other=0).to(WIDE)
    target = tl.load(target_ptr + _place(row, column, sizes, target_strides, DIMS), mask=inside, other=0).to(WIDE)
    return _loss(a, b, target, margin), row, column, inside


@triton.jit
def _losses(
    a_ptr, b_ptr, target_ptr, out_ptr, margin, rows, n, sizes, a_strides, b_strides, target_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    loss, row, column, inside = _tile(
        tl.program_id(0), a_ptr, b_ptr, target_ptr, margin, rows, n, sizes, a_strides, b_strides, target_strides,
        DIMS, ROWS, COLUMNS, WIDE,
    )  # fmt: skip
    out_at = _place(row, column, sizes, out_strides, DIMS)
    tl.store(out_ptr + out_at, loss.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _partial_sums(
    a_ptr, b_ptr, target_ptr, out_ptr, margin, tiles, rows, n, sizes, a_strides, b_strides, target_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Each program adds up ``tiles`` tiles and leaves one sum."""
    total = tl.zeros((ROWS, COLUMNS), WIDE)
    for each in range(tiles):
        loss, _, _, inside = _tile(
            tl.program_id(0) * tiles + each, a_ptr, b_ptr, target_ptr, margin, rows, n, sizes,
            a_strides, b_strides, target_strides, DIMS, ROWS, COLUMNS, WIDE,
        )  # fmt: skip
        total += tl.where(inside, loss, 0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(total))


@triton.jit
def _total(partial_ptr, out_ptr, count, divisor, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float64)
    for first in range(0, count, BLOCK):
        i = first + tl.arange(0, BLOCK)
        total += tl.load(partial_ptr + i, mask=i < count, other=0.0).to(tl.float64)
    mean = tl.sum(total, axis=0) / divisor
    if out_ptr.dtype.element_ty != tl.float64:
        mean = mean.to(tl.float32)
    tl.store(out_ptr, mean.to(out_ptr.dtype.element_ty))


def _merged(shape, *strides):
    """Sizes and strides in the order of the last operand's memory, neighbours merged where every operand allows it."""
    dims = [dim for dim in zip(shape, *strides, strict=True) if dim[0] != 1] or [(1,) * (1 + len(strides))]
    dims.sort(key=lambda dim: -dim[-1])
    merged = dims[:1]
    for size, *steps in dims[1:]:
        if all(outer == size * step for outer, step in zip(merged[-1][1:], steps, strict=True)):
            merged[-1] = (merged[-1][0] * size, *steps)
        else:
            merged.append((size, *steps))
    return tuple(zip(*merged, strict=True))


def _filled(out, a, b, target, margin, reduction):
    """``out``: all losses, or a tensor of one element for their mean or sum."""
    shape = torch.broadcast_shapes(a.shape, b.shape, target.shape)
    count = shape.numel()
    if count == 0:
        return out.fill_(float("nan") if reduction == MEAN else 0.0)
    operands = [each.expand(shape) for each in (a, b, target)]
    whole = reduction not in (MEAN, TOTAL)
    steps = [each.stride() for each in operands]
    # Where there is no result of this shape, the order of the first operand's memory does.
    sizes, *strides = _merged(shape, *steps, out.stride() if whole else steps[0])
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = (2048 if count > 1 << 17 else 1024) if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    blocks = triton.cdiv(rows, height) * triton.cdiv(n, columns)
    double = out.dtype == torch.float64
    if double:
        # As a number a kernel would take it in float32.
        margin = torch.full((), margin, dtype=torch.float64, device=out.device)
    meta = {"DIMS": len(sizes), "ROWS": height, "COLUMNS": columns, "WIDE": tl.float64 if double else tl.float32}
    if whole:
        _losses[(blocks,)](*operands, out, margin, rows, n, sizes, *strides, **meta)
        return out
    tiles = triton.cdiv(blocks, 2112)
    programs = triton.cdiv(blocks, tiles)
    partial = torch.empty(programs, dtype=torch.float64 if double else torch.float32, device=out.device)
    _partial_sums[(programs,)](*operands, partial, margin, tiles, rows, n, sizes, *strides[:-1], **meta)
    divisor = count if reduction == MEAN else 1
    _total[(1,)](partial, out, programs, divisor, BLOCK=min(triton.next_power_of_2(programs), 1024))
    return out


def margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1):
    """With broadcasting: every loss (``reduction`` 0), their mean (1) or their sum (2)."""
    shape = torch.broadcast_shapes(input1.shape, input2.shape, target.shape) if reduction == 0 else ()
    out = torch.empty(shape, dtype=input1.dtype, device=input1.device)
    return _filled(out, input1, input2, target, float(margin), reduction)
