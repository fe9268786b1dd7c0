"""rot90: a copy by strides, negative where a dimension is turned round; quarter turns go by square tiles.

Elements move as integers of their size.
"""

import math

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def _tiles(
    x_ptr, out_ptr, begin, out_begin, rows, columns, x_down, out_down, x_across, out_across,
    sizes, x_strides, out_strides, DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A tile of two dimensions, which may be the fast one of x and that of out; ``sizes`` are all others'."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    high, wide = (rows - 1) // ROWS + 1, (columns - 1) // COLUMNS + 1
    tile, rest = tl.program_id(0) % (high * wide), (tl.program_id(0) // (high * wide)).to(tl.int64)
    row = (tile // wide).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % wide).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < columns)
    x_at = begin + row * x_down + column * x_across
    out_at = out_begin + row * out_down + column * out_across
    for back in tl.static_range(1, DIMS + 1):
        x_at += rest % sizes[DIMS - back] * x_strides[DIMS - back]
        out_at += rest % sizes[DIMS - back] * out_strides[DIMS - back]
        rest = rest // sizes[DIMS - back]
    x = tl.load(x_ptr + x_at, mask=inside, other=0)
    tl.store(out_ptr + out_at, x, mask=inside)


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


def _tiled(sizes, x_strides, out_strides, total):
    """Which two of the merged dimensions make tiles, and how large these are: down, across, rows, columns.

    ``total``: elements of a tile where nothing is transposed.
    """
    dims = range(len(sizes))
    across = len(sizes) - 1
    fast = [each for each in dims if abs(x_strides[each]) == 1 and sizes[each] >= 8 and each != across]
    if fast and abs(x_strides[across]) > 1 and sizes[across] >= 8:
        # Both memories are walked along their fast dimension; the tile is turned in between.
        return fast[0], across, *(min(64, triton.next_power_of_2(sizes[each])) for each in (fast[0], across))
    down = max((each for each in dims if each != across), key=lambda each: sizes[each], default=None)
    columns = min(total, triton.next_power_of_2(sizes[across]))
    rows = 1 if down is None else min(total // columns, triton.next_power_of_2(sizes[down]))
    return down, across, rows, columns


def _moved(x, out, begin, out_begin, sizes, x_strides, out_strides):
    """``begin`` and ``out_begin``: where the first element lies, from which the strides may be negative."""
    total = 16384 // out.element_size() if out.is_cuda else 1 << 16
    down, across, rows, columns = _tiled(sizes, x_strides, out_strides, total)
    # Without a second dimension there is one row, whose strides do not matter.
    high, x_down, out_down = (1, 0, 0) if down is None else (sizes[down], x_strides[down], out_strides[down])
    rest = [each for each in range(len(sizes)) if each not in (down, across)]
    tiles = triton.cdiv(high, rows) * triton.cdiv(sizes[across], columns)
    _tiles[(tiles * math.prod(sizes[each] for each in rest),)](
        x, out, begin, out_begin, high, sizes[across], x_down, out_down, x_strides[across], out_strides[across],
        *(tuple(each[at] for at in rest) for each in (sizes, x_strides, out_strides)),
        DIMS=len(rest), ROWS=rows, COLUMNS=columns,
    )  # fmt: skip


def rot90(self, k=1, dims=(0, 1)):
    """A new row-major tensor."""
    shape = list(self.shape)
    if k % 2:
        shape[dims[0]], shape[dims[1]] = shape[dims[1]], shape[dims[0]]
    return rot90_out(self, k, dims, out=torch.empty(shape, dtype=self.dtype, device=self.device))


def rot90_out(self, k=1, dims=(0, 1), *, out):
    """The same into ``out``, of any strides, which is returned."""
    if out.numel() == 0:
        return out
    x, y = (each.view(_SAME_SIZE[each.element_size()]) for each in (self.resolve_conj(), out))
    (first, second), steps, begin = dims, list(x.stride()), 0
    down, across = steps[first], steps[second]
    k %= 4
    if k in (1, 2):
        begin += (x.shape[second] - 1) * across
        across = -across
    if k in (2, 3):
        begin += (x.shape[first] - 1) * down
        down = -down
    steps[first], steps[second] = (across, down) if k % 2 else (down, across)
    sizes, x_strides, out_strides = (list(each) for each in _merged(y.shape, steps, y.stride()))
    out_begin = 0
    for dim in range(len(sizes) - 1):
        if x_strides[dim] == -1:
            # Memory is read fast upwards only; then this dimension of the result is walked downwards.
            begin -= sizes[dim] - 1
            out_begin += (sizes[dim] - 1) * out_strides[dim]
            x_strides[dim], out_strides[dim] = 1, -out_strides[dim]
    _moved(x, y, begin, out_begin, sizes, x_strides, out_strides)
    return out
