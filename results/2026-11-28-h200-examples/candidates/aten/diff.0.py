"""diff: a row of all elements from a dimension on, less the same row without its first slice; one pass for each time.

What is put before and behind is not joined first: an element is read from wherever its place in the row falls.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _at(before_ptr, x_ptr, after_ptr, row, place, inside, x_row, before, size, after, HAS: tl.constexpr):
    """Element ``place`` of a row: ``before`` elements, then ``size`` of x, then ``after``. HAS: not x alone."""
    if HAS:
        first = tl.load(before_ptr + row * before + place, mask=inside & (place < before), other=0)
        # Not place < before + size, whose sum may leave 32 bits.
        from_x = inside & (place >= before) & (place - before < size)
        middle = tl.load(x_ptr + row * x_row + place - before, mask=from_x, other=0)
        behind = place - before - size
        last = tl.load(after_ptr + row * after + behind, mask=inside & (behind >= 0), other=0)
        value = tl.where(place < before, first, tl.where(behind < 0, middle, last))
    else:
        value = tl.load(x_ptr + row * x_row + place, mask=inside, other=0)
    return value


@triton.jit
def _differences(
    before_ptr, x_ptr, after_ptr, out_ptr, rows, columns, tiles, slice_size, x_row, out_row, before, size, after,
    HAS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, FLOATING: tl.constexpr, BOOL: tl.constexpr,
):  # fmt: skip
    """out (rows, columns), of stride ``out_row``; an element's neighbour is ``slice_size`` further on."""
    row = (tl.program_id(0) // tiles).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % tiles).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < columns)
    low = _at(before_ptr, x_ptr, after_ptr, row, column, inside, x_row, before, size, after, HAS)
    high = _at(before_ptr, x_ptr, after_ptr, row, column + slice_size, inside, x_row, before, size, after, HAS)
    if BOOL:
        difference = (high != low).to(tl.uint8)
    elif FLOATING:
        wide = tl.float64 if x_ptr.dtype.element_ty == tl.float64 else tl.float32
        difference = high.to(wide) - low.to(wide)
    else:
        difference = high - low
    tl.store(out_ptr + row * out_row + column, difference.to(out_ptr.dtype.element_ty), mask=inside)


def _rows(x, dim):
    """A row-major matrix of the dimensions before ``dim`` and from it on; bool as bytes."""
    x = x.contiguous()
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    return x.view(math.prod(x.shape[:dim]), math.prod(x.shape[dim:]))


def _once(x, before, after, slice_size, truth):
    """Matrices whose rows lie in one piece; slices of a row have ``slice_size`` elements. Returns another one."""
    rows = x.shape[0]
    ends = [0 if each is None else each.shape[1] for each in (before, after)]
    columns = max(0, sum(ends) + x.shape[1] - slice_size)
    # Rows that begin at aligned addresses are written in larger pieces.
    room = triton.cdiv(columns, 16) * 16 if rows * columns >= 1 << 20 else columns
    out = torch.empty((rows, room), dtype=x.dtype, device=x.device)[:, :columns]
    if out.numel() == 0:
        return out
    tile = (1024 if x.element_size() >= 4 else 2048) if x.is_cuda else 1 << 16
    wide = min(triton.next_power_of_2(columns), tile)
    high = min(triton.next_power_of_2(rows), tile // wide)
    tiles = triton.cdiv(columns, wide)
    _differences[(triton.cdiv(rows, high) * tiles,)](
        x if before is None else before, x, x if after is None else after, out, rows, columns, tiles, slice_size,
        x.stride(0), out.stride(0), ends[0], x.shape[1], ends[1],
        HAS=any(ends), ROWS=high, COLUMNS=wide, FLOATING=x.is_floating_point(), BOOL=truth,
    )  # fmt: skip
    return out


def diff(self, n=1, dim=-1, prepend=None, append=None):
    """A new tensor of the dtype that all promote to."""
    dim %= self.ndim
    if n == 0:
        return torch.empty_like(self).copy_(self)
    parts = [each for each in (prepend, self, append) if each is not None]
    dtype = self.dtype
    for each in parts:
        dtype = torch.promote_types(dtype, each.dtype)
    shape = list(self.shape)
    shape[dim] = max(0, sum(each.shape[dim] for each in parts) - n)
    if 0 in shape:
        return torch.empty(shape, dtype=dtype, device=self.device)
    slice_size = math.prod(shape[dim + 1 :])
    before, x, after = [None if each is None else each.to(dtype).resolve_conj() for each in (prepend, self, append)]
    if dtype.is_complex:
        before, x, after = [None if each is None else torch.view_as_real(each) for each in (before, x, after)]
        slice_size *= 2
    # A side without slices counts as none.
    before, after = [None if each is None or each.numel() == 0 else _rows(each, dim) for each in (before, after)]
    x = _once(_rows(x, dim), before, after, slice_size, dtype == torch.bool)
    for _ in range(n - 1):
        x = _once(x, None, None, slice_size, dtype == torch.bool)
    if dtype.is_complex:
        return torch.view_as_complex(x.reshape(*shape, 2))
    return (x.view(torch.bool) if dtype == torch.bool else x).reshape(shape)
