"""mean and mean.dim: sums, in pieces where results are few or terms many, then divided.

All of a tensor without gaps, and neighbouring columns, have kernels of their own. Else a tile has kept and reduced
elements: the reduced dimension of the smallest stride is the inner one, the others are gone through one step at a time.
Numbers are float32 inside (float64 for float64), rounded once when stored; complex numbers are averaged by their parts.
"""

import math

import torch
import triton
import triton.language as tl

_TYPES = {
    torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float32: tl.float32, torch.float64: tl.float64,
}  # fmt: skip


@triton.jit
def _widened(x, COMMON: tl.constexpr, WIDE: tl.constexpr):
    if x.dtype != COMMON and tl.float32 == WIDE:
        # To the dtype that is asked for, by way of float32, before it is added.
        x = x.to(tl.float32).to(COMMON)
    return x.to(WIDE)


@triton.jit
def _sum_all(
    x_ptr, out_ptr, n, piece, divisor, COMMON: tl.constexpr, WIDE: tl.constexpr, LAST: tl.constexpr,
    EVEN: tl.constexpr, BLOCK: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """The sum of each piece of n neighbours. LAST: the piece is all of them; EVEN: the pieces end with them."""
    begin = tl.program_id(0).to(tl.int64) * piece
    at = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), WIDE)
    for first in range(0, piece, BLOCK * STEPS):
        for step in tl.static_range(STEPS):
            place = begin + first + step * BLOCK
            inside = None if EVEN else at < n - place
            x = tl.load(x_ptr + place + at, mask=inside, other=None if EVEN else 0, eviction_policy="evict_first")
            total += _widened(x, COMMON, WIDE)
    y = tl.sum(total, axis=0)
    if LAST:
        y = y / divisor
    tl.store(out_ptr + tl.program_id(0), y.to(out_ptr.dtype.element_ty))


@triton.jit
def _sum_columns(
    x_ptr, out_ptr, columns, rows, piece, step, divisor, COMMON: tl.constexpr, WIDE: tl.constexpr, LAST: tl.constexpr,
    EVEN: tl.constexpr, STEPS: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The sum of each piece of every column: out (pieces, columns). Rows lie ``step`` apart. EVEN: without a rest."""
    left = tl.program_id(0).to(tl.int64) * LANES
    column, row = tl.arange(0, LANES), tl.arange(0, ROWS)
    begin = tl.program_id(1).to(tl.int64) * piece
    at = (row.to(tl.int64) * step)[:, None] + column[None, :]
    total = tl.zeros((ROWS, LANES), WIDE)
    for first in range(0, piece, ROWS * STEPS):
        for more in tl.static_range(STEPS):
            top = begin + first + more * ROWS
            inside = None if EVEN else (row < rows - top)[:, None] & (column < columns - left)[None, :]
            x_at = x_ptr + (left + top * step) + at
            x = tl.load(x_at, mask=inside, other=None if EVEN else 0, eviction_policy="evict_first")
            total += _widened(x, COMMON, WIDE)
    y = tl.sum(total, axis=0)
    if LAST:
        y = y / divisor
    out_at = out_ptr + tl.program_id(1).to(tl.int64) * columns + left + column
    tl.store(out_at, y.to(out_ptr.dtype.element_ty), mask=column < columns - left)


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
def _sum_tiles(
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
            at = first + tl.arange(0, BLOCK)
            inside = (row < kept)[:, None] & (at < inner)[None, :]
            x = tl.load(line + base + (at.to(tl.int64) * inner_step)[None, :], mask=inside, other=0)
            total += _widened(x, COMMON, WIDE)
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


def _target(out, pieces, shape, types):
    """Where sums go: to the result, or as pieces of ``shape`` to memory of their own."""
    wide = torch.float64 if types["WIDE"] == tl.float64 else torch.float32
    return out if pieces == 1 else torch.empty(shape, dtype=wide, device=out.device)


def _all(x, out, n, count, types):
    block, steps, piece = max(128, triton.next_power_of_2(n)), 1, n
    warps = min(16, max(1, block // 512))
    if n > 16384:
        block, warps = min(4096, 8192 // x.element_size()), 4
        steps = next(each for each in (4, 2, 1) if each == 1 or n >= 1056 * block * each)
        # At most some 8,000 pieces, which the next launch adds at once.
        piece = max(1, n // (4096 * block * steps)) * block * steps
    pieces = triton.cdiv(n, piece)
    sums = _target(out, pieces, (1, pieces), types)
    _sum_all[(pieces,)](
        x, sums, n, piece, count, **types, LAST=pieces == 1, EVEN=n == pieces * triton.cdiv(piece, block) * block,
        BLOCK=block, STEPS=steps, num_warps=warps,
    )  # fmt: skip
    return sums, 1


def _columns(x, out, columns, rows, step, count, types):
    narrow = x.element_size() <= 2
    if columns >= 1024 and rows >= 1024:
        lanes, height, steps = 512 if narrow else 256, 8, 2
    else:
        lanes, height, steps = 64 if narrow else 32, 64, 1
    groups, units = triton.cdiv(columns, lanes), triton.cdiv(rows, height * steps)
    pieces = max(1, min(units, 1056 // groups), triton.cdiv(units, 1024)) if rows > 1024 else 1
    piece = triton.cdiv(units, pieces) * height * steps
    pieces = triton.cdiv(rows, piece)
    sums = _target(out, pieces, (pieces, columns), types)
    _sum_columns[(groups, pieces)](
        x, sums, columns, rows, piece, step, count, **types, LAST=pieces == 1,
        EVEN=columns % lanes == 0 and rows == pieces * piece, STEPS=steps, ROWS=height, LANES=lanes,
    )  # fmt: skip
    return sums, 0


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
    # None of more than some 1,000 steps; a grid's second dimension ends at 65,535.
    pieces = max(1, min(65535, triton.cdiv(steps, 1024)))
    if programs < 528:
        pieces = max(pieces, min(steps, (1056 if programs < 8 else 2112) // programs))
    each = triton.cdiv(steps, pieces if cuda else 1)
    return rows, block, triton.cdiv(steps, each), each


def _averaged(x, dims, out, dtype, count):
    """``x``, not complex, along ``dims`` into ``out``, which has the other dimensions in order."""
    types = {"COMMON": _TYPES[dtype], "WIDE": tl.float64 if dtype == torch.float64 else tl.float32}
    others = [each for each in range(x.ndim) if each not in dims]
    kept_sizes, x_strides, out_strides = _merged(
        *([source[each] for each in others] for source in (x.shape, x.stride())), out.stride()
    )
    if kept_sizes == (1,):
        # There is nothing to step over; with 0 the compiler knows that lines begin at a boundary.
        x_strides = out_strides = (0,)
    sizes, strides = _merged(*([source[each] for each in dims] for source in (x.shape, x.stride())))
    kept, inner, outer = math.prod(kept_sizes), sizes[-1], math.prod(sizes[:-1])
    if kept == outer == strides[-1] == 1:
        sums, last = _all(x, out, inner, count, types)
    elif outer == 1 and x_strides == out_strides == (1,) and kept >= 256 and inner >= 64:
        sums, last = _columns(x, out, kept, inner, strides[-1], count, types)
    else:
        side_by_side = kept > 1 and x_strides[-1] < strides[-1]
        rows, block, pieces, each = _shares(kept, inner, outer, side_by_side, x.is_cuda)
        sums, last = _target(out, pieces, (*kept_sizes, pieces), types), len(kept_sizes)
        _sum_tiles[(triton.cdiv(kept, rows), pieces)](
            x, sums, kept, inner, outer, each * block if outer == 1 else inner, 1 if outer == 1 else each, count,
            strides[-1], int(pieces > 1), kept_sizes, x_strides, out_strides if pieces == 1 else sums.stride()[:-1],
            sizes[:-1], strides[:-1], KEPT_DIMS=len(kept_sizes), OUTER_DIMS=len(sizes) - 1 if outer > 1 else 0,
            **types, LAST=pieces == 1, ROWS=rows, BLOCK=block,
        )  # fmt: skip
    if sums is not out:
        _averaged(sums, [last], out.as_strided(kept_sizes, out_strides), sums.dtype, count)


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
