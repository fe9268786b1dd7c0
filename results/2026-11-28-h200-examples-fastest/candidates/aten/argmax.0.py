"""argmax: lanes walk along the elements and keep the largest and where it came; then the first of the largest lanes.

Neighbouring elements are lanes of one program where they are reduced, else each lane has a line of its own. Where
there are few programs, they take pieces of the lines, and a second pass chooses among the pieces' largest.
"""

import math

import torch
import triton
import triton.language as tl

_NOWHERE = tl.constexpr(2**63 - 1)
"""A place behind all others."""


@triton.jit
def _kept(best, found, x, turn):
    """The larger of ``best`` and x, and the turn that it came from; NaN is larger than all but an earlier NaN."""
    better = (x > best) | ((x != x) & (best == best))
    return tl.where(better, x, best), tl.where(better, turn, found)


@triton.jit
def _first_largest(x, place):
    """The largest x along the first dimension, NaN if there is one, and the least of its places."""
    nan = x != x
    largest = tl.max(tl.where(nan, 0, x), axis=0, keep_dims=True)
    any_nan = tl.max(nan.to(tl.int32), axis=0, keep_dims=True) > 0
    first = tl.min(tl.where(nan | ((x == largest) & ~any_nan), place, _NOWHERE), axis=0, keep_dims=True)
    if x.dtype.is_floating():
        largest = tl.where(any_nan, float("nan"), largest)
    return largest, first


@triton.jit
def _rows(
    x_ptr, largest_ptr, places_ptr, n, piece, pieces,
    BLOCK: tl.constexpr, UNROLL: tl.constexpr, SPLIT: tl.constexpr, WIDE: tl.constexpr, LOWEST: tl.constexpr,
):  # fmt: skip
    """Of x (rows, n) the largest of each piece of a row, where there are several, and its place: (rows, pieces)."""
    program = tl.program_id(0).to(tl.int64)
    start = program % pieces * piece
    size = tl.minimum(start + piece, n) - start
    lane = tl.arange(0, BLOCK)
    x_ptr += program // pieces * n + start
    best = tl.full((BLOCK,), LOWEST, WIDE)
    found = tl.zeros((BLOCK,), tl.int32)
    whole = (size // (BLOCK * UNROLL)).to(tl.int32)
    for turn in range(whole):
        for each in tl.static_range(UNROLL):
            x = tl.load(x_ptr + tl.cast(turn, tl.int64) * (BLOCK * UNROLL) + each * BLOCK + lane).to(WIDE)
            best, found = _kept(best, found, x, turn * UNROLL + each)
    for turn in range(whole * UNROLL, tl.cdiv(size, BLOCK).to(tl.int32)):
        at = tl.cast(turn, tl.int64) * BLOCK + lane
        x = tl.load(x_ptr + at, mask=at < size, other=0).to(WIDE)
        best, found = _kept(best, found, tl.where(at < size, x, LOWEST), turn)
    largest, place = _first_largest(best, found.to(tl.int64) * BLOCK + lane)
    at = program + tl.arange(0, 1)
    tl.store(places_ptr + at, start + place)
    if SPLIT:
        tl.store(largest_ptr + at, largest)


@triton.jit
def _columns(
    x_ptr, largest_ptr, places_ptr, n, inner, piece, pieces, blocks,
    LANES: tl.constexpr, UNROLL: tl.constexpr, SPLIT: tl.constexpr, EVEN: tl.constexpr,
    WIDE: tl.constexpr, LOWEST: tl.constexpr,
):  # fmt: skip
    """The same along the middle of x (outer, n, inner): (outer, pieces, inner). EVEN: LANES divides ``inner``."""
    program = tl.program_id(0).to(tl.int64)
    first, lane = program % blocks * LANES, tl.arange(0, LANES)
    outer, which = program // blocks // pieces, program // blocks % pieces
    start = which * piece
    size = (tl.minimum(start + piece, n) - start).to(tl.int32)
    inside = (first + lane < inner) | EVEN
    x_ptr += (outer * n + start) * inner + first
    best = tl.full((LANES,), LOWEST, WIDE)
    found = tl.zeros((LANES,), tl.int32)
    whole = size // UNROLL
    for turn in range(whole):
        for each in tl.static_range(UNROLL):
            x = tl.load(x_ptr + lane, mask=inside, other=0).to(WIDE)
            best, found = _kept(best, found, x, turn * UNROLL + each)
            x_ptr += inner
    for turn in range(whole * UNROLL, size):
        best, found = _kept(best, found, tl.load(x_ptr + lane, mask=inside, other=0).to(WIDE), turn)
        x_ptr += inner
    at = (outer * pieces + which) * inner + first + lane
    tl.store(places_ptr + at, start + found, mask=inside)
    if SPLIT:
        tl.store(largest_ptr + at, best, mask=inside)


@triton.jit
def _chosen(
    largest_ptr, places_ptr, out_ptr, pieces, inner, blocks,
    PIECES: tl.constexpr, LANES: tl.constexpr, LOWEST: tl.constexpr,
):  # fmt: skip
    """The place of the best piece: of (outer, pieces, inner) to (outer, inner)."""
    program = tl.program_id(0).to(tl.int64)
    outer = program // blocks
    which = tl.arange(0, PIECES)[:, None]
    column = (program % blocks * LANES + tl.arange(0, LANES))[None, :]
    inside = (which < pieces) & (column < inner)
    at = (outer * pieces + which) * inner + column
    x = tl.load(largest_ptr + at, mask=inside, other=LOWEST)
    place = _first_largest(x, tl.load(places_ptr + at, mask=inside, other=_NOWHERE))[1]
    tl.store(out_ptr + outer * inner + column, place, mask=column < inner)


def _cut(n, unit, programs):
    """How large pieces of n elements are, in whole units, and how many: several where there are few programs."""
    wanted = 528 // programs if programs < 264 else 1
    piece = triton.cdiv(triton.cdiv(n, wanted), unit) * unit
    return piece, triton.cdiv(n, piece)


def _fill(out, x, outer, n, inner):
    """``x``, row-major, seen as (outer, n, inner); ``out`` as (outer, inner)."""
    dtype, types = torch.int64, {"WIDE": tl.int64, "LOWEST": -(2**63)}
    if x.is_floating_point():
        dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
        types = {"WIDE": tl.float64 if dtype == torch.float64 else tl.float32, "LOWEST": float("-inf")}
    elif x.dtype == torch.bool:
        x = x.view(torch.uint8)
    if inner == 1:
        programs, unit = outer, 8192
        block = min(triton.next_power_of_2(n), 1024) if n <= unit else min(4096, unit // x.element_size())
    else:
        lanes = min(triton.next_power_of_2(inner), 1024 if x.element_size() <= 2 and inner >= 65536 else 512)
        blocks = triton.cdiv(inner, lanes)
        programs, unit = outer * blocks, 64
    piece, pieces = _cut(n, unit, programs)
    split = pieces > 1
    places = torch.empty((outer, pieces, inner), dtype=torch.int64, device=x.device) if split else out
    largest = torch.empty((outer, pieces, inner), dtype=dtype, device=x.device) if split else out
    if inner == 1:
        _rows[(programs * pieces,)](
            x, largest, places, n, piece, pieces, BLOCK=block, UNROLL=unit // block if n > unit else 1, SPLIT=split,
            num_warps=8 if n > unit else 4 if block >= 512 else 1, **types,
        )  # fmt: skip
    else:
        _columns[(programs * pieces,)](
            x, largest, places, n, inner, piece, pieces, blocks, LANES=lanes, UNROLL=7 if n % 8 and n % 7 == 0 else 8,
            SPLIT=split, EVEN=inner % lanes == 0, num_warps=4 if lanes >= 512 else 2 if lanes >= 128 else 1, **types,
        )  # fmt: skip
    if split:
        several = triton.next_power_of_2(pieces)
        lanes = min(triton.next_power_of_2(inner), 4096 // several, 64)
        blocks = triton.cdiv(inner, lanes)
        _chosen[(outer * blocks,)](
            largest, places, out, pieces, inner, blocks, PIECES=several, LANES=lanes, LOWEST=types["LOWEST"]
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
