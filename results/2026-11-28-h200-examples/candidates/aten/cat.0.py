"""cat: each tensor is a matrix whose rows go into some columns of the result's; eight at a time in one launch.

Values move as integers of their size. What is of another dtype or has gaps is converted or copied first.
"""

import functools
import itertools
import math

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_AT_ONCE = 8


@triton.jit
def _join(
    out_ptr, sources, rows, total, columns, places, across, begins,
    COUNT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Source k, row-major (rows, columns[k]), goes to out (rows, total) from column places[k] on, in the programs from
    begins[k] to begins[k + 1], across[k] of them side by side.
    """
    program = tl.program_id(0)
    for k in tl.static_range(COUNT):
        if (program >= begins[k]) & (program < begins[k + 1]):
            tile = program - begins[k]
            row = (tile // across[k]).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
            column = (tile % across[k]).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
            inside = (row < rows) & (column < columns[k])
            x = tl.load(sources[k] + row * columns[k] + column, mask=inside)
            tl.store(out_ptr + row * total + places[k] + column, x, mask=inside)


def _fill(out, sources, rows):
    """All have as many rows, one behind the other without gaps."""
    out = out.view(rows, -1).view(_SAME_SIZE[out.element_size()])
    sources = [each.view(rows, -1).view(out.dtype) for each in sources]
    starts = [0, *itertools.accumulate(each.shape[1] for each in sources)]
    tile = max(1024, 8192 // out.element_size()) if out.is_cuda else 1 << 14
    wide = min(triton.next_power_of_2(max(each.shape[1] for each in sources)), tile)
    high = min(triton.next_power_of_2(rows), tile // wide)
    for first in range(0, len(sources), _AT_ONCE):
        some = sources[first : first + _AT_ONCE]
        columns = tuple(each.shape[1] for each in some)
        across = tuple(triton.cdiv(each, wide) for each in columns)
        begins = (0, *itertools.accumulate(triton.cdiv(rows, high) * each for each in across))
        _join[(begins[-1],)](
            out, tuple(some), rows, out.shape[1], columns, tuple(starts[first : first + len(some)]), across, begins,
            COUNT=len(some), ROWS=high, COLUMNS=wide,
        )  # fmt: skip


def cat(tensors, dim=0):
    """A new row-major tensor of the dtype that all promote to; tensors of shape (0,) count for nothing."""
    dtype = functools.reduce(torch.promote_types, (each.dtype for each in tensors))
    parts = [each for each in tensors if each.shape != (0,)]
    if not parts:
        return torch.empty((0,), dtype=dtype, device=tensors[0].device)
    shape = list(parts[0].shape)
    shape[dim] = sum(each.shape[dim] for each in parts)
    out = torch.empty(shape, dtype=dtype, device=parts[0].device)
    if out.numel() == 0:
        return out
    sources = [each.to(dtype).resolve_conj().contiguous() for each in parts if each.numel()]
    rows = math.prod(shape[: dim % len(shape)])
    if dtype.is_complex:
        _fill(torch.view_as_real(out), [torch.view_as_real(each) for each in sources], rows)
    else:
        _fill(out, sources, rows)
    return out
