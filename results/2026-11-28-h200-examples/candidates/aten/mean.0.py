"""mean and mean.dim: sums over tiles of kept and reduced dimensions, in pieces where results are few, then divided.

The reduced dimension of the smallest stride is the inner one; the others are gone through one step at a time. Numbers
are float32 inside (float64 for float64), rounded once when stored; complex numbers are averaged by their parts.
"""

import math

import torch
import triton
import triton.language as tl

_COMMON = {
    torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32, torch.float64: tl.float64,
}  # fmt: skip


@triton.jit
def _place(at, sizes, strides, DIMS: tl.constexpr):
    """Where elements lie whose indices ``at`` counts through, the last dimension fastest."""
    offset = at * 0
    for back in tl.static_range(1, DIMS):
        offset += at % sizes[DIMS - back] * strides[DIMS - back]
        at = at // sizes[DIMS - back]
    # Without a remainder neighbours stay neighbours for the compiler, and are loaded together.
    if DIMS > 0:
        offset += at * strides[0]
    return offset


@triton.jit
def _sums(
    x_ptr, out_ptr, kept, inner, outer, inner_piece, outer_piece, divisor, inner_step, out_piece_step,
    kept_sizes, x_strides, out_strides, outer_sizes, outer_strides,
    KEPT_DIMS: tl.constexpr, OUTER_DIMS: tl.constexpr, COMMON: tl.constexpr, WIDE: tl.constexpr, LAST: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The second number of a program says which piece of the reduced dimensions it adds up. LAST: it is all of them."""
    piece = tl.program_id(1).to(tl.int64)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    line = x_ptr + _place(row, kept_sizes, x_strides, KEPT_DIMS)[:, None]
    total = tl.zeros((ROWS, BLOCK), WIDE)
    begin = piece * inner_piece if OUTER_DIMS == 0 else 0
    end = tl.minimum(begin + inner_piece, inner) if OUTER_DIMS == 0 else inner
    outer_begin = 0 if OUTER_DIMS == 0 else piece * outer_piece
    for step in range(outer_begin, tl.minimum(outer_begin + outer_piece, outer)):
        base = _place(piece * 0 + step, outer_sizes, outer_strides, OUTER_DIMS)
        for first in range(begin, end, BLOCK):
            at = (first + tl.arange(0, BLOCK)).to(tl.int64)[None, :]
            inside = (row < kept)[:, None] & (at < inner)
            x = tl.load(line + base + at * inner_step, mask=inside, other=0)
            if x.dtype != COMMON and tl.float32 == WIDE:
                # To the dtype that is asked for, by way of float32, before it is added.
                x = x.to(tl.float32).to(COMMON)
            total += x.to(WIDE)
    y = tl.sum(total, axis=1)
    if LAST:
        y = y / divisor
    out_at = _place(row, kept_sizes, out_strides, KEPT_DIMS) + piece * out_piece_step
    tl.store(out_ptr + out_at, y.to(out_ptr.dtype.element_ty), mask=row < kept)


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


def _shares(kept, inner, outer, side_by_side, cuda):
    """ROWS, BLOCK, how many pieces and how large: (inner or outer) steps. ``side_by_side``: kept elements are."""
    tile = 4096 if cuda else 1 << 16
    if side_by_side:
        rows = min(128, triton.next_power_of_2(kept))
        block = min(triton.next_power_of_2(inner), tile // rows)
    else:
        block = min(triton.next_power_of_2(inner), tile)
        rows = min(triton.next_power_of_2(kept), tile // block)
        while cuda and rows > 1 and triton.cdiv(kept, rows) < 264:
            rows //= 2
    programs = triton.cdiv(kept, rows)
    steps = triton.cdiv(inner, block) if outer == 1 else outer
    pieces = min(steps, max(1, (1056 if programs < 8 else 2112) // programs)) if cuda and programs < 528 else 1
    each = triton.cdiv(steps, pieces)
    return rows, block, triton.cdiv(steps, each), each


def _averaged(x, dims, out, dtype, count):
    """``x``, not complex, along ``dims`` into ``out``, which has the other dimensions in order."""
    double = dtype == torch.float64
    others = [each for each in range(x.ndim) if each not in dims]
    kept_sizes, x_strides, out_strides = _merged(
        *([source[each] for each in others] for source in (x.shape, x.stride())), out.stride()
    )
    if kept_sizes == (1,):
        # There is nothing to step over; with 0 the compiler knows that lines begin at a boundary.
        x_strides = out_strides = (0,)
    sizes, strides = _merged(*([source[each] for each in dims] for source in (x.shape, x.stride())))
    kept, inner, outer = math.prod(kept_sizes), sizes[-1], math.prod(sizes[:-1])
    side_by_side = kept > 1 and x_strides[-1] < strides[-1]
    rows, block, pieces, each = _shares(kept, inner, outer, side_by_side, x.is_cuda)
    target, steps, piece_step = out, out_strides, 0
    if pieces > 1:
        target = torch.empty((*kept_sizes, pieces), dtype=torch.float64 if double else torch.float32, device=x.device)
        steps, piece_step = target.stride()[:-1], 1
    _sums[(triton.cdiv(kept, rows), pieces)](
        x, target, kept, inner, outer, each * block if outer == 1 else inner, 1 if outer == 1 else each, count,
        strides[-1], piece_step, kept_sizes, x_strides, steps, sizes[:-1], strides[:-1],
        KEPT_DIMS=len(kept_sizes), OUTER_DIMS=len(sizes) - 1 if outer > 1 else 0, COMMON=_COMMON[dtype],
        WIDE=tl.float64 if double else tl.float32, LAST=pieces == 1, ROWS=rows, BLOCK=block,
    )  # fmt: skip
    if pieces > 1:
        merged = out.as_strided(kept_sizes, out_strides)
        _averaged(target, [len(kept_sizes)], merged, target.dtype, count)


def mean(self, *, dtype=None):
    """Of all elements, as a tensor without dimensions."""
    return mean_dim(self, None, dtype=dtype)


def mean_dim(self, dim, keepdim=False, *, dtype=None):
    """Along the dimensions ``dim``, all where there are none; converted to ``dtype`` first; row-major."""
    dtype = dtype or self.dtype
    dims = sorted({each % max(self.ndim, 1) for each in dim} if dim else range(self.ndim))
    dims = [each for each in dims if each < self.ndim]
    kept = [size for each, size in enumerate(self.shape) if each not in dims]
    out = torch.empty(kept, dtype=dtype, device=self.device)
    count = math.prod(self.shape[each] for each in dims)
    x = self.view(torch.uint8) if self.dtype == torch.bool else self
    if out.numel() and count == 0:
        out.fill_(complex("nan+nanj") if dtype.is_complex else float("nan"))
    elif out.numel() and dtype.is_complex:
        parts = torch.view_as_real(out)
        x = x.to(dtype).resolve_conj()
        _averaged(torch.view_as_real(x), dims, parts, parts.dtype, count)
    elif out.numel():
        _averaged(x, dims, out, dtype, count)
    return out.view([1 if each in dims else size for each, size in enumerate(self.shape)]) if keepdim else out
