"""sum and sum.dim_IntList: in one pass where there are many results, in two where there are few; float32 inside.

What is reduced is brought to the last dimension of a row-major copy, unless it lies so already. float64 is added in
float64, whole numbers and truth values in int64; complex numbers are summed by their parts.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _sum_rows(x_ptr, out_ptr, rows, n, pieces, piece, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """One piece of ROWS rows of n neighbours; out is (rows, pieces)."""
    row = (tl.program_id(0) // pieces).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    which = tl.program_id(0) % pieces
    column = tl.arange(0, BLOCK)[None, :]
    begin = which.to(tl.int64) * piece
    end = tl.minimum(begin + piece, n)
    total = tl.zeros((ROWS, BLOCK), WIDE)
    for first in range(0, piece, BLOCK):
        at = begin + first + column
        total += tl.load(x_ptr + row * n + at, mask=(row < rows) & (at < end), other=0).to(WIDE)
    out = tl.sum(total, axis=1)[:, None]
    tl.store(out_ptr + row * pieces + which, out.to(out_ptr.dtype.element_ty), mask=row < rows)


@triton.jit
def _sum_columns(x_ptr, out_ptr, n, inner, blocks, BLOCK: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr):
    """Along the middle of (outer, n, inner), LANES neighbouring lanes at a time."""
    outer = (tl.program_id(0) // blocks).to(tl.int64)
    lane = (tl.program_id(0) % blocks) * LANES + tl.arange(0, LANES)[None, :]
    step = tl.arange(0, BLOCK)[:, None]
    total = tl.zeros((BLOCK, LANES), WIDE)
    for first in range(0, n, BLOCK):
        at = (first + step).to(tl.int64)
        total += tl.load(x_ptr + (outer * n + at) * inner + lane, mask=(at < n) & (lane < inner), other=0).to(WIDE)
    out = tl.sum(total, axis=0)[None, :]
    tl.store(out_ptr + outer * inner + lane, out.to(out_ptr.dtype.element_ty), mask=lane < inner)


def sum(self, *, dtype=None):
    """All elements, as a tensor without dimensions."""
    return sum_dim_IntList(self, None, dtype=dtype)


def sum_dim_IntList(self, dim, keepdim=False, *, dtype=None):
    """Along the dimensions ``dim``, all where there are none; contiguous."""
    whole = not (self.is_floating_point() or self.is_complex())
    dtype = dtype or (torch.int64 if whole else self.dtype)
    # 16-bit floats are widened as they are read; another dtype that is asked for must be taken on first.
    x = self if dtype == self.dtype or (whole and dtype == torch.int64) else self.to(dtype)
    if dtype.is_complex:
        parts = _reduced(torch.view_as_real(x), _dims(dim, x.ndim), keepdim, torch.view_as_real(x).dtype)
        return torch.view_as_complex(parts)
    return _reduced(x, _dims(dim, x.ndim), keepdim, dtype)


def _dims(dim, rank):
    return tuple(range(rank)) if not dim else tuple(sorted(each % max(rank, 1) for each in dim))


def _reduced(x, dims, keepdim, dtype):
    """``x`` summed along ``dims``, which are in order and not negative."""
    kept = [each for each in range(x.ndim) if each not in dims]
    shape = [1 if at in dims else size for at, size in enumerate(x.shape)] if keepdim else [x.shape[at] for at in kept]
    out = torch.zeros(shape, dtype=dtype, device=x.device)
    if x.numel() == 0:
        return out
    wide = tl.int64 if dtype == torch.int64 else tl.float64 if dtype == torch.float64 else tl.float32
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    if len(dims) == 1 and dims[0] < x.ndim - 1 and x.is_contiguous():
        _columns(x, dims[0], out, wide)
    else:
        rows = x.permute(*kept, *dims).contiguous() if x.ndim else x
        _rows(rows, out.numel(), x.numel() // out.numel(), out, wide)
    return out


def _columns(x, dim, out, wide):
    n, inner = x.shape[dim], x.shape[dim + 1 :].numel()
    lanes = min(triton.next_power_of_2(inner), 32 if x.is_cuda else 4096)
    block = min(triton.next_power_of_2(n), 4096 // lanes if x.is_cuda else max(1, (1 << 18) // lanes))
    blocks = triton.cdiv(inner, lanes)
    grid = (x.shape[:dim].numel() * blocks,)
    _sum_columns[grid](x, out, n, inner, blocks, BLOCK=block, LANES=lanes, WIDE=wide, num_warps=8)


def _rows(x, rows, n, out, wide):
    """Few long rows are cut into pieces, and the sums of these are summed in turn."""
    pieces = max(1, min(n // 16384, 1024 // rows)) if x.is_cuda else 1
    tile = 4096 if x.is_cuda else 1 << 18
    block = min(triton.next_power_of_2(triton.cdiv(n, pieces)), tile)
    height = min(triton.next_power_of_2(rows), tile // block)
    piece = triton.cdiv(triton.cdiv(n, pieces), block) * block
    target = out
    if pieces > 1:
        between = {tl.int64: torch.int64, tl.float64: torch.float64}.get(wide, torch.float32)
        target = torch.empty((rows, pieces), dtype=between, device=x.device)
    grid = (triton.cdiv(rows, height) * pieces,)
    _sum_rows[grid](x, target, rows, n, pieces, piece, ROWS=height, BLOCK=block, WIDE=wide, num_warps=8)
    if pieces > 1:
        _rows(target, rows, pieces, out, wide)
