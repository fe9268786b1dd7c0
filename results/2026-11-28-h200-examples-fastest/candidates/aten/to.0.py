"""to: a copy by strides that converts on the way; what is transposed goes by square tiles.

Where the dtype stays, elements move as integers of their size.
"""

import math

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}

_AS_IT_IS, _TO_BOOL, _PAIR_TO_BOOL, _BY_FLOAT32, _BY_INT64 = (tl.constexpr(each) for each in range(5))
"""What happens to an element before it is stored in the result's dtype."""


@triton.jit
def _tiles(
    x_ptr, out_ptr, rows, columns, x_down, out_down, x_across, out_across, sizes, x_strides, out_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, KIND: tl.constexpr, PAIR: tl.constexpr,
):  # fmt: skip
    """A tile of two dimensions, which may be the fast one of x and that of out; ``sizes`` are all others'."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    high, wide = (rows - 1) // ROWS + 1, (columns - 1) // COLUMNS + 1
    tile, rest = tl.program_id(0) % (high * wide), (tl.program_id(0) // (high * wide)).to(tl.int64)
    row = (tile // wide).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % wide).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < columns)
    x_at = row * x_down + column * x_across
    out_at = row * out_down + column * out_across
    for back in tl.static_range(1, DIMS + 1):
        x_at += rest % sizes[DIMS - back] * x_strides[DIMS - back]
        out_at += rest % sizes[DIMS - back] * out_strides[DIMS - back]
        rest = rest // sizes[DIMS - back]
    x = tl.load(x_ptr + x_at, mask=inside, other=0)
    if KIND == _TO_BOOL:
        x = (x != 0).to(tl.uint8)
    elif KIND == _PAIR_TO_BOOL:
        # The imaginary part lies behind the real one.
        x = ((x != 0) | (tl.load(x_ptr + x_at + 1, mask=inside, other=0) != 0)).to(tl.uint8)
    elif KIND == _BY_FLOAT32:
        x = x.to(tl.float32)
    elif KIND == _BY_INT64:
        x = x.to(tl.int64)
    tl.store(out_ptr + out_at, x.to(out_ptr.dtype.element_ty), mask=inside)
    if PAIR:
        # The imaginary part of a real number.
        tl.store(out_ptr + out_at + 1, tl.zeros((ROWS, COLUMNS), out_ptr.dtype.element_ty), mask=inside)


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


def _moved(x, out, sizes, x_strides, out_strides, kind, pair):
    """Real ``x``, converted, to ``out``, which is made of pairs if ``pair``."""
    total = 4096 // min(x.element_size(), out.element_size()) if out.is_cuda else 1 << 16
    down, across, rows, columns = _tiled(sizes, x_strides, out_strides, total)
    # Without a second dimension there is one row, whose strides do not matter.
    high, x_down, out_down = (1, 0, 0) if down is None else (sizes[down], x_strides[down], out_strides[down])
    rest = [each for each in range(len(sizes)) if each not in (down, across)]
    tiles = triton.cdiv(high, rows) * triton.cdiv(sizes[across], columns)
    _tiles[(tiles * math.prod(sizes[each] for each in rest),)](
        x, out, high, sizes[across], x_down, out_down, x_strides[across], out_strides[across],
        *(tuple(each[at] for at in rest) for each in (sizes, x_strides, out_strides)),
        DIMS=len(rest), ROWS=rows, COLUMNS=columns, KIND=kind, PAIR=pair,
    )  # fmt: skip


def _kind(source, target, pair):
    if target == torch.bool:
        return _PAIR_TO_BOOL if pair else _TO_BOOL
    if target.is_floating_point:
        return _AS_IT_IS if target == torch.float64 else _BY_FLOAT32
    return _BY_INT64 if source.is_floating_point else _AS_IT_IS


def _copied(out, x):
    """``out``, of the same shape, filled with the values of ``x``; to real numbers go the real parts."""
    if out.numel() == 0:
        return out
    x, y, of_pairs = x.resolve_conj(), out, x.is_complex() and not out.is_complex()
    if x.is_complex() and (x.dtype != y.dtype or x.dtype == torch.complex128):
        x = torch.view_as_real(x)
        x, y = (x, torch.view_as_real(y)) if y.is_complex() else (x.select(-1, 0), y)
    pair = y.is_complex() and not x.is_complex()
    if x.dtype == y.dtype:
        x, y = (each.view(_SAME_SIZE[each.element_size()]) for each in (x, y))
        kind = _AS_IT_IS
    else:
        y = torch.view_as_real(y).select(-1, 0) if pair else y
        kind = _kind(x.dtype, y.dtype, of_pairs)
        x, y = (each.view(torch.uint8) if each.dtype == torch.bool else each for each in (x, y))
    _moved(x, y, *_merged(y.shape, x.stride(), y.stride()), kind, pair)
    return out


def _format(name):
    """A memory format, which may be named by text."""
    name = getattr(torch, name.split(".")[-1]) if isinstance(name, str) else name
    return torch.preserve_format if name is None else name


def _in_channels_last(x):
    """ATen's test for strides in the order of channels_last."""
    if x.ndim != 4 or x.stride(1) == 0:
        return False
    least = 0
    for dim in (1, 3, 2, 0):
        if x.shape[dim] == 0 or x.stride(dim) < least:
            return False
        if dim == 0 and least == x.stride(1):
            return False
        least = x.stride(dim) * max(x.shape[dim], 1)
    return True


def to_dtype(self, dtype, non_blocking=False, copy=False, memory_format=None):
    """``self`` where nothing is to be done, else a new tensor."""
    wanted = _format(memory_format)
    if self.dtype == dtype and not copy:
        own = torch.channels_last if _in_channels_last(self) else torch.contiguous_format
        if wanted in (torch.preserve_format, own):
            return self
    return _copied(torch.empty_like(self, dtype=dtype, memory_format=wanted), self)
