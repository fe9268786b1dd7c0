"""amin: tiles walk along what is reduced and keep the least of each place; few long lines are cut into pieces, whose
least elements are reduced in turn.

What is reduced is one dimension of a row-major tensor, or is brought to the end of a row-major copy.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _least(
    x_ptr, out_ptr, n, lines, step, line_step, piece, line_blocks,
    LINES: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr, HIGHEST: tl.constexpr,
):  # fmt: skip
    """The least of each piece of n elements: out (outer, lines, pieces). Of x (outer, n, lines) the elements of a line
    are ``step`` apart, neighbouring lines ``line_step``. A piece is a multiple of BLOCK.
    """
    outer = (tl.program_id(0) // line_blocks).to(tl.int64)
    line = (tl.program_id(0) % line_blocks).to(tl.int64) * LINES + tl.arange(0, LINES)
    which = tl.program_id(1).to(tl.int64)
    at = x_ptr + outer * n * lines + (line * line_step)[:, None]
    best = tl.full((LINES, BLOCK), HIGHEST, WIDE)
    for begin in range(which * piece, tl.minimum(which * piece + piece, n), BLOCK):
        place = begin + tl.arange(0, BLOCK)
        inside = (line < lines)[:, None] & (place < n)[None, :]
        x = tl.load(at + (place * step)[None, :], mask=inside, other=HIGHEST)
        best = tl.minimum(best, x.to(WIDE), propagate_nan=tl.PropagateNan.ALL)
    least = tl.min(best, axis=1)
    if WIDE.is_floating():
        nan = tl.max((best != best).to(tl.int32), axis=1)
        least = tl.where(nan > 0, float("nan"), least)
    out_at = out_ptr + (outer * lines + line) * tl.num_programs(1) + which
    tl.store(out_at, least.to(out_ptr.dtype.element_ty), mask=line < lines)


def _tile(lines, n, together, on_gpu):
    """How many lines a tile has, and how much of each; ``together``: what is next in memory is another line's."""
    tile, enough = (4096, 264) if on_gpu else (1 << 16, 1)
    if together:
        height = min(triton.next_power_of_2(lines), 128 if on_gpu else tile)
        return height, min(triton.next_power_of_2(n), tile // height)
    block = min(triton.next_power_of_2(n), tile)
    height = min(triton.next_power_of_2(lines), tile // block)
    while height > 1 and triton.cdiv(lines, height) < enough:
        height //= 2
    return height, block


def _fill(out, x, outer, n, inner):
    """``x``, row-major, seen as (outer, n, inner); ``out``, of x's dtype, as (outer, inner)."""
    types = {"WIDE": tl.float64 if x.dtype == torch.float64 else tl.float32, "HIGHEST": float("inf")}
    if not x.is_floating_point():
        types = {"WIDE": tl.int64, "HIGHEST": torch.iinfo(x.dtype).max}
    # Without an inner dimension rows lie one behind the other.
    groups, lines, step, line_step = (1, outer, 1, n) if inner == 1 else (outer, inner, inner, 1)
    height, block = _tile(lines, n, inner > 1, x.is_cuda)
    line_blocks, blocks = triton.cdiv(lines, height), triton.cdiv(n, block)
    programs, pieces = groups * line_blocks, 1
    if x.is_cuda and programs < 528:
        pieces = min(blocks, (1056 if programs < 8 else 2112) // programs)
    piece = triton.cdiv(blocks, pieces) * block
    pieces = triton.cdiv(n, piece)
    target = out if pieces == 1 else torch.empty((outer * inner, pieces), dtype=x.dtype, device=x.device)
    _least[(programs, pieces)](
        x, target, n, lines, step, line_step, piece, line_blocks, LINES=height, BLOCK=block, **types, num_warps=4
    )
    if pieces > 1:
        _fill(out, target, outer * inner, pieces, 1)


def _reduced(out, x, dims):
    """``dims`` in order and not negative; ``out`` is row-major."""
    if out.dtype == torch.bool:
        # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
        return _reduced(out.view(torch.uint8), x.view(torch.uint8), dims)
    first, last = (dims[0], dims[-1] + 1) if dims else (0, 0)
    if not x.is_contiguous() or last - first != len(dims):
        kept = [each for each in range(x.ndim) if each not in dims]
        x = x.permute(*kept, *dims)
        first, last = len(kept), x.ndim
    sizes = [math.prod(part) for part in (x.shape[:first], x.shape[first:last], x.shape[last:])]
    _fill(out, x.contiguous(), *sizes)


def _dims(x, dim):
    """What is reduced, in order: where none are given all."""
    return sorted(each % x.ndim for each in dim or range(x.ndim)) if x.ndim else []


def amin(self, dim=(), keepdim=False):
    """Along the dimensions ``dim``, all where there are none; row-major."""
    dims = _dims(self, dim)
    shape = [1 if at in dims else size for at, size in enumerate(self.shape) if keepdim or at not in dims]
    return amin_out(self, dim, keepdim, out=torch.empty(shape, dtype=self.dtype, device=self.device))


def amin_out(self, dim=(), keepdim=False, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if not out.is_contiguous():
        return out.copy_(amin(self, dim, keepdim))
    if out.numel():
        _reduced(out, self, _dims(self, dim))
    return out
