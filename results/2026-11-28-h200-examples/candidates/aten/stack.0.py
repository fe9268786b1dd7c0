"""stack: up to eight row-major tensors a launch; two along a new last dimension are interleaved in registers.

Tensors of other strides or dtypes are put in place one by one, converted on the way.
"""

import functools
import math

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def _join(
    sources, out_ptr, first, outer, inner, total, tiles, across,
    COUNT: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Each of ``sources`` is (outer, inner); their rows lie side by side in out; ``tiles`` programs move one."""
    which, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    row = (tile // across).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tile % across).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < outer) & (column < inner)
    for k in tl.static_range(COUNT):
        if which == k:
            x = tl.load(sources[k] + row * inner + column, mask=inside)
            tl.store(out_ptr + row * total + (first + which).to(tl.int64) * inner + column, x, mask=inside)


@triton.jit
def _interleave(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    block = tl.program_id(0).to(tl.int64)
    i = block * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n, other=0)
    b = tl.load(b_ptr + i, mask=i < n, other=0)
    # 2 n may not fit into 32 bits.
    at = block * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    tl.store(out_ptr + at, tl.interleave(a, b), mask=at - n < n)


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
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    # Not tl.cdiv, whose sum may leave 32 bits.
    blocks = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // blocks).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = (tl.program_id(0) % blocks).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + _place(row, column, sizes, x_strides, DIMS), mask=inside, other=0)
    if WIDEN:
        # From one floating type of 16 bits to another, or from an integer, by way of float32.
        x = x.to(tl.float32)
    tl.store(out_ptr + _place(row, column, sizes, out_strides, DIMS), x.to(out_ptr.dtype.element_ty), mask=inside)


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


def _put(out, x):
    if out.numel() == 0:
        return
    widen = out.is_floating_point() and x.dtype not in (out.dtype, torch.float64)
    sizes, *strides = _merged(out.shape, x.stride(), out.stride())
    rows, n = math.prod(sizes[:-1]), sizes[-1]
    block = 4096 // out.element_size() if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(n), block)
    height = min(triton.next_power_of_2(rows), block // columns)
    grid = (triton.cdiv(rows, height) * triton.cdiv(n, columns),)
    _tile[grid](x, out, rows, n, sizes, *strides, DIMS=len(sizes), ROWS=height, COLUMNS=columns, WIDEN=widen)


def _bytes_if_bool(x):
    """Triton has no pointers to bool; 0 and 1 as bytes are the same memory."""
    return x.view(torch.uint8) if x.dtype == torch.bool else x


def _joined(out, sources, first, outer, inner, total):
    """``sources``, the ``first`` tensor and those after it, to row-major ``out`` with rows of ``total`` elements."""
    tile = max(1024, 8192 // out.element_size()) if out.is_cuda else 1 << 16
    columns = min(triton.next_power_of_2(inner), tile)
    rows = min(triton.next_power_of_2(outer), tile // columns)
    across = triton.cdiv(inner, columns)
    tiles = triton.cdiv(outer, rows) * across
    _join[(tiles * len(sources),)](
        tuple(sources), out, first, outer, inner, total, tiles, across,
        COUNT=len(sources), ROWS=rows, COLUMNS=columns,
    )  # fmt: skip


def stack(tensors, dim=0):
    """A new row-major tensor in the promoted dtype, with a new dimension ``dim``."""
    dtype = functools.reduce(torch.promote_types, (each.dtype for each in tensors))
    shape, count = list(tensors[0].shape), len(tensors)
    dim %= len(shape) + 1
    out = torch.empty([*shape[:dim], count, *shape[dim:]], dtype=dtype, device=tensors[0].device)
    if out.numel() == 0:
        return out
    y = out
    if dtype.is_complex:
        tensors = [torch.view_as_real(each.to(dtype).resolve_conj()) for each in tensors]
        y = torch.view_as_real(out)
    inner, outer = y.shape[dim + 1 :].numel(), y.shape[:dim].numel()
    plain = [each.dtype == y.dtype and each.is_contiguous() for each in tensors]
    if count == 2 and inner == 1 and all(plain):
        same = _SAME_SIZE[y.element_size()]
        block = 1024 if y.is_cuda else 1 << 16
        a, b = (each.view(same) for each in tensors)
        _interleave[(triton.cdiv(outer, block),)](a, b, y.view(same), outer, BLOCK=block)
        return out
    tensors, y = [_bytes_if_bool(each) for each in tensors], _bytes_if_bool(y)
    for first in range(0, count, 8):
        if all(plain[first : first + 8]):
            _joined(y, tensors[first : first + 8], first, outer, inner, count * inner)
        else:
            for k in range(first, min(first + 8, count)):
                _put(y.select(dim, k), tensors[k])
    return out
