"""_softmax: a program for some short lines, or one, held in registers, or in two passes where it is too long for that.

A few lines that are very long are cut into parts: one kernel finds the maximum and sum of each, another the result.

Numbers are float32 inside (float64 for float64), rounded once when stored.
"""

import math

import torch
import triton
import triton.language as tl


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
def _place(row, sizes, strides, DIMS: tl.constexpr):
    """Where lines begin."""
    at = row * 0
    for back in tl.static_range(1, DIMS + 1):
        at += row % sizes[DIMS - back] * strides[DIMS - back]
        row = row // sizes[DIMS - back]
    return at


@triton.jit
def _short(
    x_ptr, out_ptr, rows, n, x_step, out_step, sizes, x_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :].to(tl.int64)
    inside = (row < rows) & (column < n)
    x_at = _place(row, sizes, x_strides, DIMS) + column * x_step
    x = tl.load(x_ptr + x_at, mask=inside, other=float("-inf")).to(WIDE)
    e = tl.where(column < n, _exp(x - tl.max(x, axis=1)[:, None]), 0.0)
    total = tl.sum(e, axis=1)[:, None]
    y = e / total if tl.float64 == WIDE else e * (1.0 / total.to(tl.float64)).to(tl.float32)
    out_at = _place(row, sizes, out_strides, DIMS) + column * out_step
    tl.store(out_ptr + out_at, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _long(
    x_ptr, out_ptr, n, x_step, out_step, sizes, x_strides, out_strides,
    DIMS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr, LOWEST: tl.constexpr,
):  # fmt: skip
    """LOWEST: the most negative finite number; differences of infinities would be NaN."""
    row = tl.program_id(0).to(tl.int64)
    x_line = x_ptr + _place(row, sizes, x_strides, DIMS)
    out_line = out_ptr + _place(row, sizes, out_strides, DIMS)
    step = tl.arange(0, BLOCK)
    highest = tl.full((1,), LOWEST, WIDE)
    total = tl.zeros((BLOCK,), WIDE)
    for first in range(0, n, BLOCK):
        at = (first + step).to(tl.int64)
        # It is read again below, and may still be in the cache then.
        x = tl.load(x_line + at * x_step, mask=at < n, other=float("-inf"), eviction_policy="evict_last").to(WIDE)
        above = tl.maximum(highest, tl.max(x, axis=0))
        total = total * _exp(highest - above) + _exp(x - above)
        highest = above
    inverse = (1.0 / tl.sum(total, axis=0).to(tl.float64)).to(WIDE)
    for first in range(0, n, BLOCK):
        at = (first + step).to(tl.int64)
        x = tl.load(x_line + at * x_step, mask=at < n, other=float("-inf"), eviction_policy="evict_first").to(WIDE)
        y = _exp(x - highest) * inverse
        tl.store(out_line + at * out_step, y.to(out_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def _totals(
    x_ptr, highest_ptr, total_ptr, n, x_step, parts, walk, sizes, x_strides,
    DIMS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr, LOWEST: tl.constexpr,
):  # fmt: skip
    """The maximum of a part of a line, which is ``walk`` blocks, and the sum of exp(x - maximum)."""
    line, part = tl.program_id(0).to(tl.int64) // parts, tl.program_id(0).to(tl.int64) % parts
    x_line = x_ptr + _place(line, sizes, x_strides, DIMS)
    highest = tl.full((1,), LOWEST, WIDE)
    total = tl.zeros((BLOCK,), WIDE)
    for block in range(walk):
        at = (part * walk + block) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_line + at * x_step, mask=at < n, other=float("-inf")).to(WIDE)
        above = tl.maximum(highest, tl.max(x, axis=0))
        total = total * _exp(highest - above) + tl.where(at < n, _exp(x - above), 0.0)
        highest = above
    place = tl.program_id(0) + tl.arange(0, 1)
    tl.store(highest_ptr + place, highest)
    tl.store(total_ptr + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def _of_parts(
    x_ptr, out_ptr, highest_ptr, total_ptr, n, x_step, out_step, parts, walk, sizes, x_strides, out_strides,
    DIMS: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr, WIDE: tl.constexpr, LOWEST: tl.constexpr,
):  # fmt: skip
    """The result of a part, from the totals of all parts of its line."""
    line, part = tl.program_id(0).to(tl.int64) // parts, tl.program_id(0).to(tl.int64) % parts
    each = tl.arange(0, PARTS)
    highest = tl.load(highest_ptr + line * parts + each, mask=each < parts, other=LOWEST)
    total = tl.load(total_ptr + line * parts + each, mask=each < parts, other=0.0)
    top = tl.max(highest, axis=0)
    inverse = (1.0 / tl.sum(total * _exp(highest - top), axis=0).to(tl.float64)).to(WIDE)
    x_line = x_ptr + _place(line, sizes, x_strides, DIMS)
    out_line = out_ptr + _place(line, sizes, out_strides, DIMS)
    for block in range(walk):
        at = (part * walk + block) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_line + at * x_step, mask=at < n, other=float("-inf")).to(WIDE)
        y = _exp(x - top) * inverse
        tl.store(out_line + at * out_step, y.to(out_ptr.dtype.element_ty), mask=at < n)


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


def _in_parts(x, y, dim, sizes, strides, lines, options):
    """Softmax of a few long lines."""
    n, block = x.shape[dim], 4096
    parts = min(1024, triton.cdiv(n, 8 * block))
    walk = triton.cdiv(n, block * parts)
    dtype = torch.float64 if options["WIDE"] == tl.float64 else torch.float32
    highest, total = torch.empty((2, lines, parts), dtype=dtype, device=x.device)
    options = {"DIMS": len(sizes), "BLOCK": block, **options, "num_warps": 8}
    _totals[(lines * parts,)](x, highest, total, n, x.stride(dim), parts, walk, sizes, strides[0], **options)
    _of_parts[(lines * parts,)](
        x, y, highest, total, n, x.stride(dim), y.stride(dim), parts, walk, sizes, *strides,
        PARTS=triton.next_power_of_2(parts), **options,
    )  # fmt: skip


def _softmax(self, dim, half_to_float):
    """Softmax along ``dim``, row-major, in the dtype of ``self``, or in float32 if ``half_to_float``."""
    out = torch.empty(self.shape, dtype=torch.float32 if half_to_float else self.dtype, device=self.device)
    if out.numel() == 0:
        return out
    # A tensor without dimensions counts as one of one element.
    x, y = (self, out) if self.ndim else (self.reshape(1), out.view(1))
    dim %= x.ndim
    others = [each for each in range(x.ndim) if each != dim]
    shape, *steps = ([each[at] for at in others] for each in (x.shape, x.stride(), y.stride()))
    sizes, *strides = _merged(shape, *steps)
    n, rows = x.shape[dim], math.prod(sizes)
    double = x.dtype == torch.float64
    lowest = torch.finfo(torch.float64 if double else torch.float32).min
    wide = tl.float64 if double else tl.float32
    block = max(triton.next_power_of_2(n), 16)
    if block <= (8192 if double else 16384):
        height = max(1, min(triton.next_power_of_2(rows), (1024 if x.is_cuda else 1 << 16) // block))
        warps = max(1, min(16, block // (512 if double else 1024)))
        warps = warps if warps >= 4 else 4 if block * height >= 512 else 1
        _short[(triton.cdiv(rows, height),)](
            x, y, rows, n, x.stride(dim), y.stride(dim), sizes, *strides,
            DIMS=len(sizes), ROWS=height, BLOCK=block, WIDE=wide, num_warps=warps,
        )  # fmt: skip
    elif rows < 256 and n > 1 << 16:
        _in_parts(x, y, dim, sizes, strides, rows, {"WIDE": wide, "LOWEST": lowest})
    else:
        block, warps = (4096, 16) if double else (16384, 32)
        _long[(rows,)](
            x, y, n, x.stride(dim), y.stride(dim), sizes, *strides,
            DIMS=len(sizes), BLOCK=block, WIDE=wide, LOWEST=lowest, num_warps=warps,
        )  # fmt: skip
    return out
