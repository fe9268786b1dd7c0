"""argmax: each lane keeps the largest of every so many elements and where it came; then the first of the largest lanes.

Where there are few lines, pieces of each keep the device busy, and a second pass chooses among the pieces' places.
"""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def _first_largest(x, place):
    """The least place of the largest x along the first dimension, of NaN before all."""
    nan = x != x
    largest = tl.max(tl.where(nan, 0, x), axis=0)
    any_nan = tl.max(nan.to(tl.int32), axis=0)
    chosen = tl.where(any_nan[None, :] > 0, nan.to(tl.int32), (x == largest[None, :]).to(tl.int32))
    return tl.min(tl.where(chosen > 0, place, 0x7FFFFFFFFFFFFFFF), axis=0)


@triton.jit
def _places(
    x_ptr, out_ptr, n, lines, step, line_step, piece, pieces, lane_blocks,
    BLOCK: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr, LOWEST: tl.constexpr,
):  # fmt: skip
    """Where the largest of each piece of n elements is: out (outer, pieces, lines). Of x (outer, n, lines) the elements
    of a line are ``step`` apart, neighbouring lines ``line_step``.
    """
    program = tl.program_id(0).to(tl.int64)
    line = program % lane_blocks * LANES + tl.arange(0, LANES)
    outer = program // lane_blocks // pieces
    which = program // lane_blocks % pieces
    start = which * piece
    size = tl.minimum(start * 0 + piece, n - start)
    first = tl.arange(0, BLOCK)[:, None]
    at = x_ptr + outer * n * lines + (start + first) * step + (line * line_step)[None, :]
    stride = outer * 0 + step
    best = tl.full((BLOCK, LANES), LOWEST, WIDE)
    best_round = tl.zeros((BLOCK, LANES), tl.int32)
    for turn in range(tl.cdiv(size, BLOCK).to(tl.int32)):
        inside = (first < size - tl.cast(turn, tl.int64) * BLOCK) & (line < lines)[None, :]
        x = tl.where(inside, tl.load(at, mask=inside, other=0).to(WIDE), LOWEST)
        better = (x > best) | ((x != x) & (best == best))
        best = tl.where(better, x, best)
        best_round = tl.where(better, turn, best_round)
        at += BLOCK * stride
    place = _first_largest(best, best_round.to(tl.int64) * BLOCK + first) + start
    tl.store(out_ptr + (outer * pieces + which) * lines + line, place, mask=line < lines)


@triton.jit
def _chosen(
    x_ptr, places_ptr, out_ptr, n, lines, step, line_step, pieces, lane_blocks,
    PIECES: tl.constexpr, LANES: tl.constexpr, WIDE: tl.constexpr, LOWEST: tl.constexpr,
):  # fmt: skip
    """The best of the places (outer, pieces, lines): out (outer, lines)."""
    program = tl.program_id(0).to(tl.int64)
    outer = program // lane_blocks
    line = program % lane_blocks * LANES + tl.arange(0, LANES)
    which = tl.arange(0, PIECES)[:, None]
    inside = (which < pieces) & (line < lines)[None, :]
    place = tl.load(places_ptr + (outer * pieces + which) * lines + line[None, :], mask=inside, other=0)
    at = x_ptr + outer * n * lines + place * step + (line * line_step)[None, :]
    x = tl.where(inside, tl.load(at, mask=inside, other=0).to(WIDE), LOWEST)
    place = tl.where(inside, place, 0x7FFFFFFFFFFFFFFF)
    tl.store(out_ptr + outer * lines + line, _first_largest(x, place), mask=line < lines)


def _types(x):
    """x as Triton takes it, the type to compare in, and its lowest value."""
    if x.is_floating_point():
        return x, {"WIDE": tl.float64 if x.dtype == torch.float64 else tl.float32, "LOWEST": float("-inf")}
    return x.view(torch.uint8) if x.dtype == torch.bool else x, {"WIDE": tl.int64, "LOWEST": -(2**63)}


def _fill(out, x, outer, n, inner):
    """``x``, row-major, seen as (outer, n, inner); ``out`` as (outer, inner)."""
    x, types = _types(x)
    tile = (8192 if types["WIDE"] == tl.float32 else 2048) if x.is_cuda else 1 << 16
    if inner == 1:
        # Rows lie one behind the other, each in one piece.
        outer, lines, step, line_step = 1, outer, 1, n
        block = min(triton.next_power_of_2(n), tile if n > 8192 else 1024)
        lanes = 1 if x.is_cuda else min(triton.next_power_of_2(lines), tile // block)
    else:
        lines, step, line_step = inner, inner, 1
        lanes = min(triton.next_power_of_2(lines), 512)
        block = min(triton.next_power_of_2(n), 8 if x.is_cuda else tile // lanes, tile // lanes)
    lane_blocks = triton.cdiv(lines, lanes)
    programs, pieces = outer * lane_blocks, 1
    if x.is_cuda and programs < 264 and n >= 8 * block:
        pieces = min(528 // programs, triton.cdiv(n, 4 * block))
    piece = triton.cdiv(triton.cdiv(n, pieces), block) * block
    pieces = triton.cdiv(n, piece)
    places = out if pieces == 1 else torch.empty((outer, pieces, lines), dtype=torch.int64, device=x.device)
    _places[(programs * pieces,)](
        x, places, n, lines, step, line_step, piece, pieces, lane_blocks, BLOCK=block, LANES=lanes, **types,
        num_warps=8 if block * lanes >= 8192 else 4 if block * lanes >= 512 else 1,
    )  # fmt: skip
    if pieces > 1:
        several = triton.next_power_of_2(pieces)
        lanes = max(1, min(triton.next_power_of_2(lines), 4096 // several, 64))
        lane_blocks = triton.cdiv(lines, lanes)
        _chosen[(outer * lane_blocks,)](
            x, places, out, n, lines, step, line_step, pieces, lane_blocks, PIECES=several, LANES=lanes, **types
        )  # fmt: skip


def argmax(self, dim=None, keepdim=False):
    """int64 places along ``dim``, or in the flattened tensor; row-major."""
    if dim is None or self.ndim == 0:
        shape, outer, n, inner = (1,) * self.ndim if keepdim else (), 1, self.numel(), 1
    else:
        dim %= self.ndim
        shape = (*self.shape[:dim], *((1,) if keepdim else ()), *self.shape[dim + 1 :])
        outer, n, inner = math.prod(self.shape[:dim]), self.shape[dim], math.prod(self.shape[dim + 1 :])
    out = torch.empty(shape, dtype=torch.int64, device=self.device)
    if out.numel() and not n:
        raise IndexError("argmax of no elements")
    if out.numel():
        _fill(out, self.contiguous(), outer, n, inner)
    return out
