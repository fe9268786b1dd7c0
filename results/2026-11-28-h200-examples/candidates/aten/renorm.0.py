"""renorm: a program for some short slices along the dimension, or one: its norm first, then what that scales it by.

A slice of up to one block stays in registers in between; a few very long ones are cut into parts, whose norms a second
kernel puts together. Numbers are float32 inside, float64 for float64 and for norms
by way of a logarithm; complex numbers are pairs of parts.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _place(row, sizes, strides, DIMS: tl.constexpr):
    """Where elements of a slice lie."""
    at = row * 0
    for back in tl.static_range(1, DIMS):
        at += row % sizes[DIMS - back] * strides[DIMS - back]
        row = row // sizes[DIMS - back]
    # Without a remainder neighbours stay neighbours for the compiler, and are loaded together.
    return at + row * strides[0]


@triton.jit
def _size(real, imaginary):
    """The absolute value of a complex number, whose square may leave the dtype."""
    one, other = tl.abs(real), tl.abs(imaginary)
    larger = tl.where(one > other, one, other)
    ratio = tl.where(one > other, other, one) / tl.where(larger == 0, 1.0, larger)
    # NaN of either part stays, and of two infinities no quotient is formed.
    return tl.where(larger == float("inf"), one + other, larger * tl.sqrt(1.0 + ratio * ratio))


@triton.jit
def _term(real, imaginary, power, KIND: tl.constexpr, PAIR: tl.constexpr):
    """What an element adds to the norm of its slice, or (for "largest") its absolute value."""
    if KIND == "squares":
        return real * real + imaginary * imaginary if PAIR else real * real
    size = _size(real, imaginary) if PAIR else tl.abs(real)
    return tl.exp(power * tl.log(size)) if KIND == "power" else size


@triton.jit
def _added(total, term, KIND: tl.constexpr):
    if KIND == "largest":
        return tl.where((term > total) | (term != term), term, total)
    else:
        return total + term


@triton.jit
def _factor(total, power, most, KIND: tl.constexpr):
    if KIND == "largest":
        # Triton's maximum leaves NaN out.
        any_nan = tl.sum((total != total).to(tl.int32), axis=1) > 0
        norm = tl.where(any_nan, float("nan"), tl.max(total, axis=1))
    else:
        norm = tl.sum(total, axis=1)
        if KIND == "squares":
            norm = tl.sqrt(norm)
        elif KIND == "power":
            norm = tl.exp(tl.log(norm) / power)
    return tl.where(norm > most, most / (norm + 1e-7), 1.0)[:, None]


@triton.jit
def _loaded(line, at, inside, PAIR: tl.constexpr, WIDE: tl.constexpr):
    real = tl.load(line + at, mask=inside, other=0).to(WIDE)
    imaginary = tl.load(line + at + 1, mask=inside, other=0).to(WIDE) if PAIR else real
    return real, imaginary


@triton.jit
def _put(line, at, real, imaginary, inside, PAIR: tl.constexpr):
    # From float64 to 16 bits by way of float32.
    if line.dtype.element_ty != tl.float64:
        real, imaginary = real.to(tl.float32), imaginary.to(tl.float32)
    tl.store(line + at, real.to(line.dtype.element_ty), mask=inside)
    if PAIR:
        tl.store(line + at + 1, imaginary.to(line.dtype.element_ty), mask=inside)


@triton.jit
def _renorm(
    x_ptr, out_ptr, slices, n, x_step, out_step, power, most, sizes, x_strides, out_strides,
    DIMS: tl.constexpr, SLICES: tl.constexpr, BLOCK: tl.constexpr, WHOLE: tl.constexpr, KIND: tl.constexpr,
    PAIR: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A slice has ``n`` elements. WHOLE: they are one block at most."""
    slice = tl.program_id(0).to(tl.int64) * SLICES + tl.arange(0, SLICES)[:, None]
    x_line = x_ptr + slice * x_step
    out_line = out_ptr + slice * out_step
    if tl.float64 == WIDE:
        power, most = tl.load(power), tl.load(most)
    if WHOLE:
        i = tl.arange(0, BLOCK)[None, :].to(tl.int64)
        inside = (slice < slices) & (i < n)
        real, imaginary = _loaded(x_line, _place(i, sizes, x_strides, DIMS), inside, PAIR, WIDE)
        total = tl.where(inside, _term(real, imaginary, power, KIND, PAIR), 0.0)
        factor = _factor(total, power, most, KIND)
        _put(out_line, _place(i, sizes, out_strides, DIMS), real * factor, imaginary * factor, inside, PAIR)
    else:
        total = tl.zeros((SLICES, BLOCK), WIDE)
        for first in range(0, n, BLOCK):
            i = (first + tl.arange(0, BLOCK)[None, :]).to(tl.int64)
            inside = (slice < slices) & (i < n)
            real, imaginary = _loaded(x_line, _place(i, sizes, x_strides, DIMS), inside, PAIR, WIDE)
            total = _added(total, tl.where(inside, _term(real, imaginary, power, KIND, PAIR), 0.0), KIND)
        factor = _factor(total, power, most, KIND)
        for first in range(0, n, BLOCK):
            i = (first + tl.arange(0, BLOCK)[None, :]).to(tl.int64)
            inside = (slice < slices) & (i < n)
            real, imaginary = _loaded(x_line, _place(i, sizes, x_strides, DIMS), inside, PAIR, WIDE)
            _put(out_line, _place(i, sizes, out_strides, DIMS), real * factor, imaginary * factor, inside, PAIR)


@triton.jit
def _seen(
    x_ptr, seen_ptr, n, parts, walk, x_step, power, sizes, x_strides,
    DIMS: tl.constexpr, BLOCK: tl.constexpr, KIND: tl.constexpr, PAIR: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """What the elements of a part of a slice, ``walk`` blocks, add to its norm; a sum for each place in a block."""
    slice, part = tl.program_id(0).to(tl.int64) // parts, tl.program_id(0).to(tl.int64) % parts
    if tl.float64 == WIDE:
        power = tl.load(power)
    total = tl.zeros((1, BLOCK), WIDE)
    for block in range(walk):
        i = (part * walk + block) * BLOCK + tl.arange(0, BLOCK)[None, :]
        at = _place(i, sizes, x_strides, DIMS)
        real, imaginary = _loaded(x_ptr + slice * x_step, at, i < n, PAIR, WIDE)
        total = _added(total, tl.where(i < n, _term(real, imaginary, power, KIND, PAIR), 0.0), KIND)
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(seen_ptr + place, total)


@triton.jit
def _factors(
    seen_ptr, factor_ptr, seen, power, most, BLOCK: tl.constexpr, KIND: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A slice's factor from the ``seen`` numbers that its parts have left."""
    if tl.float64 == WIDE:
        power, most = tl.load(power), tl.load(most)
    slice = tl.program_id(0).to(tl.int64)
    total = tl.zeros((1, BLOCK), WIDE)
    for first in range(0, seen, BLOCK):
        total = _added(total, tl.load(seen_ptr + slice * seen + first + tl.arange(0, BLOCK)[None, :]), KIND)
    factor = _factor(total, power, most, KIND)
    tl.store(factor_ptr + slice + tl.arange(0, 1)[None, :], factor)


@triton.jit
def _scaled(
    x_ptr, out_ptr, factor_ptr, n, parts, walk, x_step, out_step, sizes, x_strides, out_strides,
    DIMS: tl.constexpr, BLOCK: tl.constexpr, PAIR: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    slice, part = tl.program_id(0).to(tl.int64) // parts, tl.program_id(0).to(tl.int64) % parts
    factor = tl.load(factor_ptr + slice)
    for block in range(walk):
        i = (part * walk + block) * BLOCK + tl.arange(0, BLOCK)[None, :]
        at = _place(i, sizes, x_strides, DIMS)
        real, imaginary = _loaded(x_ptr + slice * x_step, at, i < n, PAIR, WIDE)
        at = _place(i, sizes, out_strides, DIMS)
        _put(out_ptr + slice * out_step, at, real * factor, imaginary * factor, i < n, PAIR)


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


def renorm(self, p, dim, maxnorm):
    """A new row-major tensor."""
    return renorm_out(self, p, dim, maxnorm, out=torch.empty(self.shape, dtype=self.dtype, device=self.device))


def renorm_out(self, p, dim, maxnorm, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if out.numel() == 0:
        return out
    pair = self.is_complex()
    x, y = (torch.view_as_real(self.resolve_conj()), torch.view_as_real(out)) if pair else (self, out)
    dim %= self.ndim
    others = [each for each in range(self.ndim) if each != dim]
    sizes, *strides = _merged(*([each[at] for at in others] for each in (x.shape, x.stride(), y.stride())))
    kind = {1: "sum", 2: "squares", math.inf: "largest"}.get(p, "power")
    double = x.dtype == torch.float64 or kind == "power"
    p, most = float(p), float(maxnorm)
    if double:
        # As numbers a kernel would take them in float32.
        p, most = (torch.full((), each, dtype=torch.float64, device=x.device) for each in (p, most))
    n = math.prod(sizes)
    block = min((2048 if double else 8192) if x.is_cuda else 1 << 16, triton.next_power_of_2(n))
    slices = x.shape[dim]
    options = {"DIMS": len(sizes), "BLOCK": block, "PAIR": pair, "WIDE": tl.float64 if double else tl.float32}
    if slices < 256 and n > 1 << 16:
        _in_parts(x, y, dim, n, p, most, sizes, strides, kind, options)
        return out
    together = max(1, min(triton.next_power_of_2(slices), (1024 if x.is_cuda else 1 << 16) // block))
    _renorm[(triton.cdiv(slices, together),)](
        x, y, slices, n, x.stride(dim), y.stride(dim), p, most, sizes, *strides,
        SLICES=together, WHOLE=n <= block, KIND=kind, **options,
        num_warps=4 if block <= 2048 else 16 if n > block else 8,
    )  # fmt: skip
    return out


def _in_parts(x, y, dim, n, p, most, sizes, strides, kind, options):
    """A few slices of ``n`` elements, a program for each part of each."""
    slices, block = x.shape[dim], options["BLOCK"]
    parts = min(1024, triton.cdiv(n, 4 * block))
    walk = triton.cdiv(n, block * parts)
    dtype = torch.float64 if options["WIDE"] == tl.float64 else torch.float32
    seen = torch.empty((slices, parts * block), dtype=dtype, device=x.device)
    factor = torch.empty((slices,), dtype=dtype, device=x.device)
    step, out_step, grid = x.stride(dim), y.stride(dim), (slices * parts,)
    _seen[grid](x, seen, n, parts, walk, step, p, sizes, strides[0], KIND=kind, **options, num_warps=8)
    _factors[(slices,)](seen, factor, parts * block, p, most, BLOCK=block, KIND=kind, WIDE=options["WIDE"], num_warps=8)
    _scaled[grid](x, y, factor, n, parts, walk, step, out_step, sizes, *strides, **options, num_warps=8)
