"""polygamma: derivatives of the digamma function.

Orders 0 to 2 in float32 by recurrence, a series for large arguments and, below 0, reflection; digamma has a polynomial
beside its root. All else in float64 by n! zeta(n + 1, x): a sum of terms, and the Euler-Maclaurin series for the rest.
"""

import math
from fractions import Fraction

import torch
import triton
import triton.language as tl

_SINE = tl.constexpr((
    -2.19153534478302158e-5, 4.66302805767612564e-4, -7.37043094571435078e-3, 8.21458866111282288e-2,
    -5.99264529320792077e-1, 2.55016403987734544, -5.16771278004997003, 3.14159265358979324,
))  # fmt: skip
_COSINE = tl.constexpr((
    -1.04638104924845707e-4, 1.92957430940392305e-3, -2.580689139001406e-2, 2.35330630358893205e-1,
    -1.3352627688545895, 4.05871212641676822, -4.93480220054467931, 1.0,
))  # fmt: skip
_MIDDLE_32 = tl.constexpr((
    -7.70345988221080235e-3, 1.12328752876012038e-2, -1.10916551352489064e-2, 1.69091672972655843e-2,
    -2.71029748547242925e-2, 4.08948805154180866e-2, -6.19126468295662998e-2, 9.4980700294490821e-2,
    -1.48405224062070052e-1, 2.40542658675314021e-1, -4.23627418564244355e-1, 9.51055875419868495e-1,
))  # fmt: skip
_MIDDLE_64 = tl.constexpr((
    1.22415910000242664e-4, -1.78373424004624238e-4, 9.15881688211700097e-5, -1.44603846092400878e-4,
    3.26893164736214563e-4, -4.86064170504123527e-4, 6.89942851421908948e-4, -1.03642272478280226e-3,
    1.56357399155151241e-3, -2.34550162791071173e-3, 3.51807927170281237e-3, -5.27993641788574141e-3,
    7.92702413684363634e-3, -1.19082201697860022e-2, 1.79072481922887522e-2, -2.69757966568647186e-2,
    4.07608339447412267e-2, -6.19221332755618254e-2, 9.49887244528281799e-2, -1.48404923053880067e-1,
    2.4054248424078737e-1, -4.23627421281460603e-1, 9.51055876031832879e-1,
))  # fmt: skip
_LARGE_32 = tl.constexpr((1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12))
_LARGE_64 = tl.constexpr((
    281.460144927536232, -26.4562121212121212, 3.05395433027011974, -0.443259803921568627, 1 / 12,
    -0.0210927960927960928, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12,
))  # fmt: skip
_FIRST = tl.constexpr((5 / 66, -1 / 30, 1 / 42, -1 / 30, 1 / 6))
_SECOND = tl.constexpr((5 / 12, -3 / 20, 1 / 12, -1 / 12, 1 / 4))
_BERNOULLI = [Fraction(top, bottom) for top, bottom in zip(
    (1, -1, 1, -1, 5, -691, 7, -3617, 43867, -174611), (6, 30, 42, 30, 66, 2730, 6, 510, 798, 330), strict=True
)]  # fmt: skip


@triton.jit
def _polynomial(x, TERMS: tl.constexpr, COUNT: tl.constexpr):
    """By Horner's rule; the term of the highest power comes first."""
    y = tl.zeros_like(x) + TERMS[0]
    for k in tl.static_range(1, COUNT):
        y = y * x + TERMS[k]
    return y


@triton.jit
def _below(x):
    """How far x lies above a whole number, or (as a negative number) below one, whichever is nearer."""
    above = x - tl.floor(x)
    below = (0.0 - tl.floor(0.0 - x)) - x
    return tl.where(above <= 0.5, above, 0.0 - below)


@triton.jit
def _sin_cos(d):
    """Of pi * d for d from -1/2 to 1/2."""
    if d.dtype == tl.float64:
        return tl.sin(d * 3.141592653589793), tl.cos(d * 3.141592653589793)
    else:
        return _polynomial(d * d, _SINE, 8) * d, _polynomial(d * d, _COSINE, 8)


@triton.jit
def _digamma(x, STEPS: tl.constexpr, ROOT: tl.constexpr, REST: tl.constexpr, MIDDLE: tl.constexpr, LARGE: tl.constexpr):
    """ROOT + REST is where it is 0, MIDDLE its quotient by the distance from there, from 1 to 2."""
    z = tl.where(x < 0.0, 1.0 - x, x)
    small = z < 1.0
    far = tl.where(small, z + 1.0, z)
    # To 1 to 2 by psi(t) = psi(t - 1) + 1 / (t - 1), the sum as one fraction.
    t = far
    top = tl.zeros_like(z)
    bottom = top + 1.0
    for _ in tl.static_range(STEPS):
        more = t > 2.0
        top = tl.where(more, top * (t - 1.0) + bottom, top)
        bottom = tl.where(more, bottom * (t - 1.0), bottom)
        t = tl.where(more, t - 1.0, t)
    near = ((t - ROOT) - REST) * _polynomial(t - 1.5, MIDDLE, 23 if x.dtype == tl.float64 else 12) + top / bottom
    inverse = 1.0 / far
    square = inverse * inverse
    series = _polynomial(square, LARGE, 11 if x.dtype == tl.float64 else 5)
    y = tl.where(far < STEPS + 2.0, near, tl.log(far) - 0.5 * inverse - square * series)
    y = tl.where(small, y - 1.0 / z, y)
    if tl.max((x < 0.0).to(tl.int32)) > 0:
        d = _below(x)
        sine, cosine = _sin_cos(d)
        reflected = tl.where(d == 0.0, float("nan"), y - 3.141592653589793 * (cosine / sine))
        y = tl.where(x < 0.0, reflected, y)
    return tl.where(x == 0.0, -1.0 / x, y)


@triton.jit
def _first_32(x):
    z = tl.where(x < 0.0, 1.0 - x, x)
    total = tl.zeros_like(z)
    for step in tl.static_range(4):
        inverse = 1.0 / (z + (3 - step))
        total += inverse * inverse
    inverse = 1.0 / (z + 4.0)
    square = inverse * inverse
    y = (inverse + 0.5 * square + inverse * square * _polynomial(square, _FIRST, 5)) + total
    if tl.max((x < 0.0).to(tl.int32)) > 0:
        sine, _ = _sin_cos(_below(x))
        cosecant = 3.141592653589793 / sine
        y = tl.where(x < 0.0, cosecant * cosecant - y, y)
    return y


@triton.jit
def _second_32(x):
    z = tl.where(x < 0.0, 1.0 - x, x)
    total = tl.zeros_like(z)
    for step in tl.static_range(4):
        inverse = 1.0 / (z + (3 - step))
        total += inverse * inverse * inverse
    inverse = 1.0 / (z + 4.0)
    square = inverse * inverse
    y = -2.0 * ((0.5 * square + 0.5 * square * inverse + square * square * _polynomial(square, _SECOND, 5)) + total)
    if tl.max((x < 0.0).to(tl.int32)) > 0:
        sine, cosine = _sin_cos(_below(x))
        cosecant = 3.141592653589793 / sine
        y = tl.where(x < 0.0, y - 2.0 * (cosine * cosecant) * cosecant * cosecant, y)
    return tl.where(x == 0.0, -float("inf"), y)


@triton.jit
def _zeta(q, N: tl.constexpr, TERMS: tl.constexpr):
    """N! zeta(N + 1, q) for q >= 0."""
    total = tl.zeros_like(q)
    for k in range(N + 12):
        inverse = 1.0 / (q + k)
        term = inverse
        for factor in tl.static_range(1, N + 1):
            term = term * (inverse * factor)
        total += term
    far = q + (N + 12)
    inverse = 1.0 / far
    term = inverse
    for factor in tl.static_range(1, N + 1):
        term = term * (inverse * factor)
    return total + term * (far / N + 0.5 + inverse * _polynomial(inverse * inverse, TERMS, 10))


@triton.jit
def _general(x, N: tl.constexpr, TERMS: tl.constexpr):
    """Over the numbers x + k: those above 0 begin at x's fraction, those below 0 are few, down from there to x."""
    negative = x < 0.0
    above = x - tl.floor(x)
    below = (0.0 - tl.floor(0.0 - x)) - x
    y = _zeta(tl.where(negative, above, tl.where(x == 0.0, 0.0, x)), N, TERMS) * (1.0 if N % 2 else -1.0)
    if tl.max(negative.to(tl.int32)) > 0:
        few = _zeta(tl.where(negative, below, 1.0), N, TERMS) - _zeta(tl.where(negative, 1.0 - x, 1.0), N, TERMS)
        y = tl.where(negative, y + few, y)
    return y


@triton.jit
def _polygamma(x, N: tl.constexpr, TERMS: tl.constexpr, DOUBLE: tl.constexpr):
    if N == 0 and DOUBLE:
        return _digamma(x, 6, 1.46163214496836225, 9.54999542996569772e-17, _MIDDLE_64, _LARGE_64)
    elif DOUBLE:
        return _general(x, N, TERMS)
    elif N == 0:
        return _digamma(x.to(tl.float32), 4, 1.4616321325302124, 1.24381499389189095e-8, _MIDDLE_32, _LARGE_32)
    elif N == 1:
        return _first_32(x.to(tl.float32))
    elif N == 2:
        return _second_32(x.to(tl.float32))
    else:
        return _general(x.to(tl.float32).to(tl.float64), N, TERMS)


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
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, N: tl.constexpr, TERMS: tl.constexpr, DOUBLE:
    tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + _place(row, column, sizes, x_strides, DIMS), mask=inside, other=1)
    y = _polygamma(x, N, TERMS, DOUBLE).to(out_ptr.dtype.element_ty)
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


def _terms(n):
    """Of 1 / x**2 in the series for large x: Bernoulli's numbers times (n + 2j - 1)! / (n! (2j)!), the last first."""
    numbers = [number * math.factorial(n + 2 * j - 1) for j, number in enumerate(_BERNOULLI, 1)]
    return tuple(float(each / math.factorial(2 * j) / math.factorial(n)) for j, each in enumerate(numbers, 1))[::-1]


def _filled(out, x, n):
    if out.numel() == 0:
        return out
    if x.dtype == torch.bool:
        # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
        x = x.view(torch.uint8)
    order = int(n)
    meta = {"N": order, "TERMS": _terms(order) if order else (), "DOUBLE": x.dtype == torch.float64}
    sizes, *strides = _merged(out.shape, x.stride(), out.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 1024 if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](x, out, rows, n, sizes, *strides, DIMS=len(sizes), ROWS=height, COLUMNS=columns, **meta)
    return out


def polygamma(n, self):
    """A new tensor of the input's shape in its floating dtype, or in float32 for integers and truth values."""
    dtype = self.dtype if self.is_floating_point() else torch.float32
    return _filled(torch.empty_like(self, dtype=dtype), self, n)


def polygamma_out(n, self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return _filled(out, self, n)
