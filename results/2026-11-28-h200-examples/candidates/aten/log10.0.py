"""log10: the natural logarithm times 1 / log(10), for complex numbers its principal value.

Real numbers are float32 inside (float64 for float64), complex ones float64; rounded once.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _log10(x):
    if x.dtype == tl.float64:
        return tl.log(x) * 0.43429448190325182765
    # Denormal numbers are scaled by 2**64 first: the hardware's logarithm takes them for zeros.
    small = x < 1.0e-30
    scaled = tl.where(small, x * 18446744073709551616.0, x)
    return tl.log(scaled) * 0.43429448190325182765 + tl.where(small, -19.265919722494797, 0.0)


@triton.jit
def _log10_complex(x, y):
    """log10 of x + iy in float64: half the logarithm of x * x + y * y, and the angle."""
    any_inf = (tl.abs(x) == float("inf")) | (tl.abs(y) == float("inf"))
    any_nan = (x != x) | (y != y)
    # With an infinity the angle is that of a direction in which finite parts count as 0.
    a = tl.where(any_inf | any_nan, (tl.abs(x) == float("inf")).to(tl.float64), tl.abs(x))
    b = tl.where(any_inf | any_nan, (tl.abs(y) == float("inf")).to(tl.float64), tl.abs(y))
    steep = b > a
    high, low = tl.where(steep, b, a), tl.where(steep, a, b)
    squares = high * high + low * low
    # Near 1 the sum of squares less 1 is taken, which keeps what 1 + it would lose.
    near = (squares > 0.5) & (squares < 2.0)
    above = tl.where(near, (high - 1.0) * (high + 1.0) + low * low, 0.0)
    whole = 1.0 + above
    lost = above - (whole - 1.0)
    log = tl.where(near, tl.log(whole) + lost / whole, tl.log(tl.where(near, 1.0, squares)))
    real = tl.where(any_inf, float("inf"), tl.where(any_nan, float("nan"), log * 0.21714724095162590))
    angle = _arctan(low / tl.where(high > 0.0, high, 1.0))
    angle = tl.where(steep, 1.5707963267948966 - angle, angle)
    angle = tl.where(x.to(tl.int64, bitcast=True) < 0, 3.141592653589793 - angle, angle) * 0.43429448190325182765
    angle = tl.where(any_nan, float("nan"), angle)
    return real, tl.where(y.to(tl.int64, bitcast=True) < 0, -angle, angle)


@triton.jit
def _arctan(q):
    """For q from 0 to 1: fdlibm's polynomial, above tan(pi / 8) by way of (q - 1) / (q + 1)."""
    far = q > 0.41421356237309503
    v = tl.where(far, (q - 1.0) / (q + 1.0), q)
    z = v * v
    t = z * 1.62858201153657823623e-02 - 3.65315727442169155270e-02
    t = t * z + 4.97687799461593236017e-02
    t = t * z - 5.83357013379057348645e-02
    t = t * z + 6.66107313738753120669e-02
    t = t * z - 7.69187620504482999495e-02
    t = t * z + 9.09088713343650656196e-02
    t = t * z - 1.11111104054623557880e-01
    t = t * z + 1.42857142725034663711e-01
    t = t * z - 1.99999999998764832476e-01
    t = t * z + 3.33333333333329318027e-01
    return v - v * (z * t) + tl.where(far, 0.78539816339744831, 0.0)


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
    x_ptr, out_ptr, rows, n, sizes, x_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, COMPLEX: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    x_at = x_ptr + _place(row, column, sizes, x_strides, DIMS)
    out_at = out_ptr + _place(row, column, sizes, out_strides, DIMS)
    x = tl.load(x_at, mask=inside, other=0)
    if COMPLEX:
        real, imaginary = _log10_complex(x.to(tl.float64), tl.load(x_at + 1, mask=inside, other=0).to(tl.float64))
        tl.store(out_at, real.to(out_ptr.dtype.element_ty), mask=inside)
        tl.store(out_at + 1, imaginary.to(out_ptr.dtype.element_ty), mask=inside)
    else:
        wide = tl.float64 if x.dtype == tl.float64 else tl.float32
        tl.store(out_at, _log10(x.to(wide)).to(out_ptr.dtype.element_ty), mask=inside)


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


def _filled(out, x):
    if out.numel() == 0:
        return out
    shape, pair = out.shape, out.is_complex()
    y = torch.view_as_real(out) if pair else out
    if pair:
        x = torch.view_as_real(x.resolve_conj())
    elif x.dtype == torch.bool:
        # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
        x = x.view(torch.uint8)
    sizes, *strides = _merged(shape, *(each.stride()[: len(shape)] for each in (x, y)))
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 4096 // out.element_size() if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](x, y, rows, n, sizes, *strides, DIMS=len(sizes), ROWS=height, COLUMNS=columns, COMPLEX=pair)
    return out


def log10(self):
    """A new tensor of the input's shape and dtype; float32 for integers and truth values."""
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    return _filled(torch.empty_like(self, dtype=dtype), self)


def log10_out(self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return _filled(out, self)
