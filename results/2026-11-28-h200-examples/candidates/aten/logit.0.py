"""logit: log(x / (1 - x)), x first held between eps and 1 - eps if that is given.

Numbers are float32 inside (float64 for float64) and rounded once. Near x = 1/2, where the logarithm is small, what its
argument loses by rounding is made good.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _logit(x, COARSE: tl.constexpr):
    if COARSE:
        return tl.log(x / (1.0 - x))
    middle = (x > 0.25) & (x < 0.75)
    # Here x / (1 - x) = 1 + rest, and log(whole + lost) = log(whole) + lost / whole.
    rest = tl.where(middle, 2.0 * x - 1.0, x) / (1.0 - x)
    whole = tl.where(middle, 1.0 + rest, rest)
    lost = rest - (whole - 1.0)
    if x.dtype == tl.float64:
        lost = lost / whole
    else:
        # The correction is tiny, so that four terms of 1 / whole in u = 2x - 1 are enough, and faster.
        u = 2.0 * x - 1.0
        lost = lost * (1.0 + u * (-2.0 + u * (2.0 - 2.0 * u)))
    return tl.log(whole) + tl.where(middle, lost, 0.0)


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
    x_ptr, out_ptr, eps, rows, n, sizes, x_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CLAMP: tl.constexpr, COARSE: tl.constexpr, WIDE:
    tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + _place(row, column, sizes, x_strides, DIMS), mask=inside, other=0).to(WIDE)
    if CLAMP:
        low = tl.load(eps) if tl.float64 == WIDE else eps
        high = 1.0 - low
        x = tl.where(x < low, low, tl.where(x > high, high, x))
    y = _logit(x, COARSE).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + _place(row, column, sizes, out_strides, DIMS), y, mask=inside)


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


def _filled(out, x, eps):
    if out.numel() == 0:
        return out
    double = out.dtype == torch.float64
    clamp = eps is not None and not eps < 0
    eps = float(eps) if clamp else 0.0
    if double:
        # As a number a kernel would take it in float32.
        eps = torch.full((), eps, dtype=torch.float64, device=x.device)
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    meta = {"CLAMP": clamp, "COARSE": x.dtype == torch.bfloat16, "WIDE": tl.float64 if double else tl.float32}
    sizes, *strides = _merged(out.shape, x.stride(), out.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 4096 // out.element_size() if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](x, out, eps, rows, n, sizes, *strides, DIMS=len(sizes), ROWS=height, COLUMNS=columns, **meta)
    return out


def logit(self, eps=None):
    """A new tensor of the input's shape in its floating dtype, or in float32 for integers and truth values."""
    dtype = self.dtype if self.is_floating_point() else torch.float32
    return _filled(torch.empty_like(self, dtype=dtype), self, eps)


def logit_out(self, eps=None, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return _filled(out, self, eps)
