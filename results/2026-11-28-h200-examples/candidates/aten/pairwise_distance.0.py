"""pairwise_distance: programs walk along a few rows of both tensors at once and reduce what they have seen at the end.

A few rows that are very long are cut into parts; a second kernel reduces what their programs have seen.

Numbers are float32 inside (float64 for float64, and for norms by way of a logarithm), rounded once when stored.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _place(row, sizes, strides, DIMS: tl.constexpr):
    """Where rows begin."""
    at = row * 0
    for back in tl.static_range(1, DIMS):
        at += row % sizes[DIMS - back] * strides[DIMS - back]
        row = row // sizes[DIMS - back]
    # Without a remainder neighbours stay neighbours for the compiler, and are loaded together.
    return at + row * strides[0]


@triton.jit
def _added(total, t, inside, power, KIND: tl.constexpr):
    if KIND == "sum":
        return total + tl.where(inside, tl.abs(t), 0.0)
    elif KIND == "squares":
        return total + tl.where(inside, t * t, 0.0)
    elif KIND == "count":
        return total + tl.where(inside & (t != 0), 1.0, 0.0)
    elif KIND == "largest":
        t = tl.where(inside, tl.abs(t), 0.0)
        return tl.where((t > total) | (t != t), t, total)
    elif KIND == "smallest":
        t = tl.where(inside, tl.abs(t), float("inf"))
        return tl.where((t < total) | (t != t), t, total)
    else:
        return total + tl.where(inside, tl.exp(power * tl.log(tl.abs(t))), 0.0)


@triton.jit
def _reduced(total, power, KIND: tl.constexpr):
    # Triton's maximum and minimum leave NaN out.
    any_nan = tl.sum((total != total).to(tl.int32), axis=1) > 0
    if KIND == "largest":
        return tl.where(any_nan, float("nan"), tl.max(total, axis=1))
    elif KIND == "smallest":
        return tl.where(any_nan, float("nan"), tl.min(total, axis=1))
    elif KIND == "squares":
        squares = tl.sum(total, axis=1)
        return tl.sqrt(squares) if squares.dtype == tl.float64 else tl.sqrt_rn(squares)
    elif KIND == "power":
        return tl.exp(tl.log(tl.sum(total, axis=1)) / power)
    else:
        return tl.sum(total, axis=1)


@triton.jit
def _stored(total, out_ptr, row, rows, power, sizes, out_strides, DIMS: tl.constexpr, KIND: tl.constexpr):
    y = _reduced(total, power, KIND)
    # From float64 to 16 bits by way of float32.
    y = y if out_ptr.dtype.element_ty == tl.float64 else y.to(tl.float32)
    tl.store(out_ptr + _place(row, sizes, out_strides, DIMS), y.to(out_ptr.dtype.element_ty), mask=row < rows)


@triton.jit
def _distances(
    x_ptr, y_ptr, out_ptr, seen_ptr, rows, n, parts, walk, x_step, y_step, eps, power,
    sizes, x_strides, y_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, KIND: tl.constexpr, WIDE: tl.constexpr,
    WHOLE: tl.constexpr,
):  # fmt: skip
    """Each of ``parts`` parts of a row is ``walk`` blocks. WHOLE: there is one, and its distance is stored."""
    row = tl.program_id(0).to(tl.int64) // parts * ROWS + tl.arange(0, ROWS)
    begin = tl.program_id(0).to(tl.int64) % parts * walk * BLOCK
    x_line = (x_ptr + _place(row, sizes, x_strides, DIMS))[:, None]
    y_line = (y_ptr + _place(row, sizes, y_strides, DIMS))[:, None]
    if tl.float64 == WIDE:
        eps, power = tl.load(eps), tl.load(power)
    total = tl.full((ROWS, BLOCK), float("inf") if KIND == "smallest" else 0.0, WIDE)
    for block in range(walk):
        column = (begin + block * BLOCK + tl.arange(0, BLOCK))[None, :]
        inside = (row < rows)[:, None] & (column < n)
        x = tl.load(x_line + column * x_step, mask=inside, other=0).to(WIDE)
        y = tl.load(y_line + column * y_step, mask=inside, other=0).to(WIDE)
        total = _added(total, (x - y) + eps, inside, power, KIND)
    if WHOLE:
        _stored(total, out_ptr, row, rows, power, sizes, out_strides, DIMS, KIND)
    else:
        seen = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        tl.store(seen_ptr + seen, tl.reshape(total, [BLOCK]))


@triton.jit
def _of_parts(
    seen_ptr, out_ptr, rows, seen, power, sizes, out_strides,
    DIMS: tl.constexpr, BLOCK: tl.constexpr, KIND: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A row's distance from the ``seen`` numbers that its parts have left."""
    row = tl.program_id(0).to(tl.int64) + tl.arange(0, 1)
    if tl.float64 == WIDE:
        power = tl.load(power)
    total = tl.full((1, BLOCK), float("inf") if KIND == "smallest" else 0.0, WIDE)
    for first in range(0, seen, BLOCK):
        i = (first + tl.arange(0, BLOCK))[None, :]
        t = tl.load(seen_ptr + row[:, None] * seen + i)
        if KIND == "largest":
            total = tl.where((t > total) | (t != t), t, total)
        elif KIND == "smallest":
            total = tl.where((t < total) | (t != t), t, total)
        else:
            total += t
    _stored(total, out_ptr, row, rows, power, sizes, out_strides, DIMS, KIND)


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


def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The ``p``-norm of x1 - x2 + ``eps`` along the last dimension, with broadcasting, in the promoted dtype."""
    shape = torch.broadcast_shapes(x1.shape, x2.shape)
    kept = (*shape[:-1], 1) if keepdim and shape else shape[:-1]
    out = torch.empty(kept, dtype=torch.result_type(x1, x2), device=x1.device)
    if out.numel() == 0:
        return out
    # Two numbers count as two vectors of one element.
    x, y = (each.expand(shape if shape else (1,)) for each in (x1, x2))
    n = x.shape[-1]
    if n == 0:
        return out.fill_(0)
    kind = {1: "sum", 2: "squares", 0: "count", math.inf: "largest", -math.inf: "smallest"}.get(p, "power")
    double = out.dtype == torch.float64 or kind == "power"
    eps, p = float(eps), float(p)
    if double:
        # As numbers a kernel would take them in float32.
        eps, p = (torch.full((), each, dtype=torch.float64, device=out.device) for each in (eps, p))
    sizes, *strides = _merged(shape[:-1], x.stride()[:-1], y.stride()[:-1], out.stride()[: x.ndim - 1])
    rows = math.prod(sizes)
    tile = (1024 if kind == "power" else 4096) if out.is_cuda else 1 << 16
    block = min(256 if kind == "power" else 2048, triton.next_power_of_2(n))
    height = min(tile // block, triton.next_power_of_2(rows), 256 if out.is_cuda else tile)
    # A few long rows are not work enough for a GPU.
    parts = min(1024, triton.cdiv(n, 16 * block)) if rows < 256 and n > 1 << 16 else 1
    wide = tl.float64 if double else tl.float32
    seen = out
    if parts > 1:
        height = 1
        seen = torch.empty((rows, parts * block), dtype=torch.float64 if double else torch.float32, device=out.device)
    _distances[(triton.cdiv(rows, height) * parts,)](
        x, y, out, seen, rows, n, parts, triton.cdiv(n, block * parts), x.stride(-1), y.stride(-1), eps, p,
        sizes, *strides, DIMS=len(sizes), ROWS=height, BLOCK=block, KIND=kind, WIDE=wide, WHOLE=parts == 1,
        num_warps=4 if kind == "power" else 8,
    )  # fmt: skip
    if parts > 1:
        _of_parts[(rows,)](
            seen, out, rows, parts * block, p, sizes, strides[-1], DIMS=len(sizes), BLOCK=block, KIND=kind, WIDE=wide
        )
    return out
