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
    x_ptr, out_ptr, n, lines, step, line_step, piece, pieces, lane_blocks,
    BLOCK: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr, HIGHEST: tl.constexpr,
):  # fmt: skip
    """The least of each piece of n elements: out (outer, pieces, lines). Of x (outer, n, lines) the elements of a line
    are ``step`` apart, neighbouring lines ``line_step``.
    """
    program = tl.program_id(0).to(tl.int64)
    line = program % lane_blocks * LANES + tl.arange(0, LANES)
    outer = program // lane_blocks // pieces
    which = program // lane_blocks % pieces
    begin = which * piece
    end = tl.minimum(begin + piece, n)
    place = begin + tl.arange(0, BLOCK)[:, None]
    base = x_ptr + outer * n * lines + (line * line_step)[None, :]
    best = tl.full((BLOCK, LANES), HIGHEST, WIDE)
    for _ in range(tl.cdiv(end - begin, BLOCK).to(tl.int32)):
        inside = (place < end) & (line < lines)[None, :]
        x = tl.where(inside, tl.load(base + place * step, mask=inside, other=0).to(WIDE), HIGHEST)
        # NaN stays: nothing is less.
        best = tl.where((x < best) | (x != x), x, best)
        place += BLOCK
    least = tl.min(best, axis=0)
    if WIDE.is_floating():
        nan = tl.max((best != best).to(tl.int32), axis=0)
        least = tl.where(nan > 0, float("nan"), least)
    out_at = out_ptr + (outer * pieces + which) * lines + line
    tl.store(out_at, least.to(out_ptr.dtype.element_ty), mask=line < lines)


def _fill(out, x, outer, n, inner):
    """``x``, row-major, seen as (outer, n, inner); ``out``, of x's dtype, as (outer, inner)."""
    types = {"WIDE": tl.int64, "HIGHEST": 2**63 - 1}
    if x.is_floating_point():
        types = {"WIDE": tl.float64 if x.dtype == torch.float64 else tl.float32, "HIGHEST": float("inf")}
    tile, enough = (4096, 264) if x.is_cuda else (1 << 16, 1)
    groups, lines, step, line_step = outer, inner, inner, 1
    if inner == 1:
        # Rows lie one behind the other, each in one piece.
        groups, lines, step, line_step = 1, outer, 1, n
        block = min(triton.next_power_of_2(n), tile)
        lanes = min(triton.next_power_of_2(lines), tile // block)
        while lanes > 1 and triton.cdiv(lines, lanes) < enough:
            lanes //= 2
    else:
        lanes = min(triton.next_power_of_2(lines), 128 if x.is_cuda else tile)
        block = min(triton.next_power_of_2(n), tile // lanes)
    lane_blocks = triton.cdiv(lines, lanes)
    programs, pieces = groups * lane_blocks, 1
    if programs < 2 * enough and n > block:
        pieces = min(triton.cdiv(n, block), max(1, 8 * enough // programs))
    piece = triton.cdiv(triton.cdiv(n, pieces), block) * block
    pieces = triton.cdiv(n, piece)
    target = out if pieces == 1 else torch.empty((groups, pieces, lines), dtype=x.dtype, device=x.device)
    _least[(programs * pieces,)](
        x, target, n, lines, step, line_step, piece, pieces, lane_blocks, BLOCK=block, LANES=lanes, **types
    )  # fmt: skip
    if pieces > 1:
        _fill(out, target, groups, pieces, lines)


def _reduced(out, x, dims, keepdim):
    """``dims`` in order and not negative; ``out`` is row-major."""
    if out.dtype == torch.bool:
        # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
        return _reduced(out.view(torch.uint8), x.view(torch.uint8), dims, keepdim)
    first, last = (dims[0], dims[-1] + 1) if dims else (0, 0)
    if not x.is_contiguous() or last - first != len(dims):
        kept = [each for each in range(x.ndim) if each not in dims]
        x = x.permute(*kept, *dims)
        first, last = len(kept), x.ndim
    sizes = [math.prod(part) for part in (x.shape[:first], x.shape[first:last], x.shape[last:])]
    _fill(out, x.contiguous(), *sizes)


def amin(self, dim=(), keepdim=False):
    """Along the dimensions ``dim``, all where there are none; row-major."""
    dims = sorted(each % max(self.ndim, 1) for each in dim or range(self.ndim)) if self.ndim else []
    shape = [1 if at in dims else size for at, size in enumerate(self.shape)]
    if not keepdim:
        shape = [size for at, size in enumerate(self.shape) if at not in dims]
    out = torch.empty(shape, dtype=self.dtype, device=self.device)
    if out.numel():
        _reduced(out, self, dims, keepdim)
    return out


def amin_out(self, dim=(), keepdim=False, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return out.copy_(amin(self, dim, keepdim))
