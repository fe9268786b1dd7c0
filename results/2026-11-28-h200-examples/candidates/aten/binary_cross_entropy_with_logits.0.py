"""binary_cross_entropy_with_logits: losses in tiles of rows, the innermost dimension that is left after merging; of a
sum or a mean each program leaves one number, and a second pass adds them in float64.

Losses are float32 inside (float64 for float64), from log(1 + exp(-|x|)), which does not overflow.
"""

import torch
import triton
import triton.language as tl

MEAN = 1


@triton.jit
def _exp(x):
    """float32, for x <= 0: 2^n in the exponent's bits, shifted by 64 so that it is never subnormal."""
    x = tl.where(x < -120.0, -120.0, x)
    # 1.5 * 2^23 + 64: the sum has n + 64 in its lowest bits.
    shifted = x * 1.4426950408889634 + 12582976.0
    n = shifted - 12582976.0
    rest = (x - n * 0.693359375) + n * 2.12194440e-4
    bits = tl.exp2(rest * 1.4426950408889634).to(tl.int32, bitcast=True) + (shifted.to(tl.int32, bitcast=True) << 23)
    # 2^-64; the product with 0 keeps NaN.
    return bits.to(tl.float32, bitcast=True) * 5.421010862427522e-20 + x * 0.0


@triton.jit
def _loss(x, target, positive, POSITIVE: tl.constexpr, WIDE: tl.constexpr):
    e = tl.exp(-tl.abs(x)) if tl.float64 == WIDE else _exp(-tl.abs(x))
    u = 1.0 + e
    # log(1 + e), with what 1 + e rounds away.
    log = tl.log(u) + (e - (u - 1.0))
    if POSITIVE:
        # x - x makes NaN of -inf.
        linear = tl.where(x < 0.0, -(positive * target * x) + (x - x), (1.0 - target) * x)
        loss = (1.0 + (positive - 1.0) * target) * log + linear
    else:
        loss = log + tl.where(x < 0.0, -(target * x) + (x - x), (1.0 - target) * x)
    return loss


@triton.jit
def _places(row, column, sizes, strides, step, DIMS: tl.constexpr):
    """Where a tile's elements lie, by sizes and strides of the dimensions outside of its rows."""
    at = tl.zeros_like(row)
    for back in tl.static_range(DIMS):
        at += row % sizes[DIMS - 1 - back] * strides[DIMS - 1 - back]
        row = row // sizes[DIMS - 1 - back]
    return at[:, None] + (column * step)[None, :]


@triton.jit
def _losses(
    x_ptr, t_ptr, w_ptr, p_ptr, out_ptr, rows, columns, tiles, turns, sizes,
    x_strides, t_strides, w_strides, p_strides, out_strides, x_step, t_step, w_step, p_step, out_step,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr, WEIGHT: tl.constexpr,
    POSITIVE: tl.constexpr, SUM: tl.constexpr,
):  # fmt: skip
    """``turns`` tiles for each program, ``tiles`` of them in a row. SUM: out has one number for each program."""
    total = tl.zeros((ROWS, COLUMNS), WIDE)
    for turn in range(turns):
        tile = tl.program_id(0).to(tl.int64) * turns + turn
        row = tile // tiles * ROWS + tl.arange(0, ROWS)
        column = tile % tiles * COLUMNS + tl.arange(0, COLUMNS)
        inside = (row < rows)[:, None] & (column < columns)[None, :]
        x = tl.load(x_ptr + _places(row, column, sizes, x_strides, x_step, DIMS), mask=inside, other=0).to(WIDE)
        target = tl.load(t_ptr + _places(row, column, sizes, t_strides, t_step, DIMS), mask=inside, other=0).to(WIDE)
        positive = x
        if POSITIVE:
            at = p_ptr + _places(row, column, sizes, p_strides, p_step, DIMS)
            positive = tl.load(at, mask=inside, other=0).to(WIDE)
        loss = _loss(x, target, positive, POSITIVE, WIDE)
        if WEIGHT:
            at = w_ptr + _places(row, column, sizes, w_strides, w_step, DIMS)
            loss = loss * tl.load(at, mask=inside, other=0).to(WIDE)
        if SUM:
            total += tl.where(inside, loss, 0.0)
        else:
            at = out_ptr + _places(row, column, sizes, out_strides, out_step, DIMS)
            tl.store(at, loss.to(out_ptr.dtype.element_ty), mask=inside)
    if SUM:
        tl.store(out_ptr + tl.program_id(0), tl.sum(tl.sum(total, axis=1), axis=0))


@triton.jit
def _total(partial_ptr, out_ptr, count, divisor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(partial_ptr + i, mask=i < count, other=0.0).to(tl.float64), axis=0) / divisor
    tl.store(out_ptr, total.to(out_ptr.dtype.element_ty))


def _merged(shape, *strides):
    """(size, stride of each) by dimension, two at least; neighbours are one where every operand allows it."""
    dims = [each for each in zip(shape, *strides, strict=True) if each[0] > 1]
    merged = []
    for size, *steps in sorted(dims, key=lambda each: each[-1], reverse=True):
        if merged and all(outer == size * step for outer, step in zip(merged[-1][1:], steps, strict=True)):
            merged[-1] = (size * merged[-1][0], *steps)
        else:
            merged.append((size, *steps))
    return [(1,) * (1 + len(strides))] * (2 - len(merged)) + merged


def _launched(x, target, weight, positive, out, turns, tile, summed):
    """The losses into ``out``, or what ``turns`` tiles sum up to each."""
    tensors = [x, *((x if each is None else each).expand(x.shape) for each in (target, weight, positive))]
    steps = (out if not summed else x).stride()
    *outer, (columns, *last) = _merged(x.shape, *(each.stride() for each in tensors), steps)
    sizes, *strides = zip(*outer, strict=True)
    rows = x.numel() // columns
    wide = min(triton.next_power_of_2(columns), tile)
    high = min(triton.next_power_of_2(rows), tile // wide)
    tiles = triton.cdiv(columns, wide)
    programs = triton.cdiv(triton.cdiv(rows, high) * tiles, turns)
    if summed:
        out = torch.empty(programs, dtype=torch.promote_types(x.dtype, torch.float32), device=x.device)
    _losses[(programs,)](
        *tensors, out, rows, columns, tiles, turns, sizes, *strides, *last,
        DIMS=len(sizes), ROWS=high, COLUMNS=wide, WIDE=tl.float64 if x.dtype == torch.float64 else tl.float32,
        WEIGHT=weight is not None, POSITIVE=positive is not None, SUM=summed,
    )  # fmt: skip
    return out


def binary_cross_entropy_with_logits_out(self, target, weight=None, pos_weight=None, reduction=1, *, out):
    """Every element's loss (``reduction`` 0), their mean (1) or their sum (2) into ``out``, of any strides."""
    n = self.numel()
    tile = 1024 if self.is_cuda else 1 << 16
    if reduction == 0:
        return _launched(self, target, weight, pos_weight, out, 1, tile, False) if n else out
    if n == 0:
        return out.fill_(float("nan") if reduction == MEAN else 0.0)
    turns = triton.cdiv(triton.cdiv(n, tile), 2112)
    partial = _launched(self, target, weight, pos_weight, out, turns, tile, True)
    count = partial.numel()
    divisor = n if reduction == MEAN else 1
    _total[(1,)](partial, out, count, divisor, BLOCK=triton.next_power_of_2(count))
    return out


def binary_cross_entropy_with_logits(self, target, weight=None, pos_weight=None, reduction=1):
    """The same as a new tensor."""
    out = torch.empty(self.shape if reduction == 0 else (), dtype=self.dtype, device=self.device)
    return binary_cross_entropy_with_logits_out(self, target, weight, pos_weight, reduction, out=out)
