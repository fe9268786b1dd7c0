"""soft_margin_loss: log(1 + exp(-target * x)), each, or their mean or sum in two passes.

Numbers are float32 inside (float64 for float64); the last sums are float64.
"""

import math

import torch
import triton
import triton.language as tl

MEAN, TOTAL = 1, 2


@triton.jit
def _exp(x):
    """exp(x) for x <= 0 or NaN, to one or two units in the last place: the hardware's loses digits where x is large."""
    if x.dtype == tl.float64:
        return tl.exp(x)
    else:
        x = tl.where(x < -120.0, -120.0, x)
        # To the nearest whole number of log(2)s, by adding what leaves no room for a fraction.
        shifted = x * 1.4426950408889634 + 12582976.0
        n = shifted - 12582976.0
        rest = (x - n * 0.693359375) + n * 2.12194440e-4
        bits = tl.exp2(rest * 1.4426950408889634).to(tl.int32, bitcast=True)
        # The exponent is raised by n + 64, then lowered by 64, so that small results round as they should.
        bits += shifted.to(tl.int32, bitcast=True) << 23
        return bits.to(tl.float32, bitcast=True) * 5.421010862427522e-20 + x * 0.0


@triton.jit
def _loss(x, target):
    """For v = -target * x: max(v, 0) + log(1 + exp(-abs(v))), where nothing overflows."""
    v = 0.0 - target * x
    e = _exp(0.0 - tl.abs(v))
    whole = 1.0 + e
    # What the sum loses by rounding is added to its logarithm.
    return tl.where(v < 0.0, 0.0, v) + (tl.log(whole) + (e - (whole - 1.0)))


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
    tile, x_ptr, target_ptr, rows, n, sizes, x_strides, target_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Losses of a tile, with their rows and columns and which of them there are."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tile // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + _place(row, column, sizes, x_strides, DIMS), mask=inside, other=0).to(WIDE)
    target = tl.load(target_ptr + _place(row, column, sizes, target_strides, DIMS), mask=inside, other=0).to(WIDE)
    return _loss(x, target), row, column, inside


@triton.jit
def _losses(
    x_ptr, target_ptr, out_ptr, rows, n, sizes, x_strides, target_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    loss, row, column, inside = _tile(
        tl.program_id(0), x_ptr, target_ptr, rows, n, sizes, x_strides, target_strides,
        DIMS, ROWS, COLUMNS, WIDE,
    )  # fmt: skip
    out_at = _place(row, column, sizes, out_strides, DIMS)
    tl.store(out_ptr + out_at, loss.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _partial_sums(
    x_ptr, target_ptr, out_ptr, tiles, rows, n, sizes, x_strides, target_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Each program adds up ``tiles`` tiles and leaves one sum."""
    total = tl.zeros((ROWS, COLUMNS), WIDE)
    for each in range(tiles):
        loss, _, _, inside = _tile(
            tl.program_id(0) * tiles + each, x_ptr, target_ptr, rows, n, sizes,
            x_strides, target_strides, DIMS, ROWS, COLUMNS, WIDE,
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


def _filled(out, x, target, reduction):
    """``out``: all losses, or a tensor of one element for their mean or sum."""
    shape = torch.broadcast_shapes(x.shape, target.shape)
    count = shape.numel()
    if count == 0:
        return out.fill_(float("nan") if reduction == MEAN else 0.0)
    operands = [each.expand(shape) for each in (x, target)]
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
    meta = {"DIMS": len(sizes), "ROWS": height, "COLUMNS": columns, "WIDE": tl.float64 if double else tl.float32}
    if whole:
        _losses[(blocks,)](*operands, out, rows, n, sizes, *strides, **meta)
        return out
    tiles = triton.cdiv(blocks, 2112)
    programs = triton.cdiv(blocks, tiles)
    partial = torch.empty(programs, dtype=torch.float64 if double else torch.float32, device=out.device)
    _partial_sums[(programs,)](*operands, partial, tiles, rows, n, sizes, *strides[:-1], **meta)
    divisor = count if reduction == MEAN else 1
    _total[(1,)](partial, out, programs, divisor, BLOCK=min(triton.next_power_of_2(programs), 1024))
    return out


def soft_margin_loss(self, target, reduction=1):
    """Every loss (``reduction`` 0), their mean (1) or their sum (2)."""
    out = torch.empty(self.shape if reduction == 0 else (), dtype=self.dtype, device=self.device)
    return _filled(out, self, target, reduction)


def soft_margin_loss_out(self, target, reduction=1, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return _filled(out, self, target, reduction)
