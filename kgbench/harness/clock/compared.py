"""Evidence about every timed call that costs less than an oracle: which one is least like the library's own.

Both windows of a pair have the same inputs, so each of the candidate's calls has one of the library's beside it. A
sample of elements says how far apart the two are. That is no verdict: an honest kernel may round otherwise. But a call
that was left out lies further from the library's than its neighbours do, so the one that lies furthest is judged.

What a random operator gives has nothing beside it. There a call is judged whose sample came before, or is what lay
there when the call began.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Final

import torch

from kgbench.core.kinds import Kind
from kgbench.harness.clock.outputs import SecuredOutputs
from kgbench.harness.clock.window_inputs import WindowInputs, WindowLayout
from kgbench.harness.verdict.inputs import GUARD_BYTES, itemsize
from kgbench.harness.verdict.narrow_dtypes import widened
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.wire.buffers import ALIGNMENT_BYTES, round_up
from kgbench.problem.cases.layout import row_major
from kgbench.problem.model import Access

SAMPLED: Final = 1024
"""Maximum number of elements of an output that are compared."""
STANDS_OUT: Final = 4.0
"""Ratio of a call's difference from the library's to the median call's, from which the call is judged."""
LEAST_DIFFERENCE: Final = 1e-9
"""Least value of the median call's difference, relative to the sum of both outputs."""
COMPARED_CALLS: Final = 90
"""Minimum number of calls that are compared where the library's times are known. A kernel that leaves out one call in
twenty has a chance of 1 % that none of 90 is one of these.
"""


@dataclass(frozen=True)
class Sample:
    """Where the sampled elements of an output lie in each call."""

    name: str
    dtype: torch.dtype
    logical: torch.Tensor
    """int64 (n,): indices into the output in row-major order."""
    stored: torch.Tensor
    """int64 (n,): elements from the call's start."""

    def of(self, rows: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
        """(calls, n) elements of the output's dtype.

        Args:
            rows: uint8 (calls, stride).
            places: int64 (calls,), which row each call is.
        """
        return rows.view(self.dtype)[places[:, None], self.stored]


@dataclass(frozen=True)
class Suspect:
    """A timed call that is judged because of what its sample was."""

    difference: float
    sample: Sample
    """Of the output that showed it."""
    call: PlacedCall
    secured: torch.Tensor


class ComparedCalls:
    """Compares samples of all timed calls of one case with the library's, and keeps the call that is furthest off."""

    def __init__(self, layout: WindowLayout, choose: random.Random) -> None:
        self.layout = layout
        self.samples = samples_of(layout, choose)
        self.differences: list[list[float]] = [[] for _ in self.samples]
        """Of every call that was compared, by output."""
        self.worst: dict[int, Suspect] = {}
        """The call that is furthest off in an output, by the output's number."""
        self._waiting: tuple[WindowInputs, str, list[torch.Tensor]] | None = None
        """The window whose other one is still to come: its inputs, its side, its samples."""

    @property
    def compared(self) -> int:
        return len(self.differences[0]) if self.samples else 0

    def note(self, side: str, inputs: WindowInputs, outputs: dict[str, SecuredOutputs]) -> None:
        """Take the samples of a window that has just been secured; the second of two with the same inputs compares."""
        if not self.samples:
            return
        rows, places = outputs[side].rows, outputs[side].places
        taken = [each.of(rows, places) for each in self.samples]
        if self._waiting is None or self._waiting[0] is not inputs or self._waiting[1] == side:
            self._waiting = inputs, side, taken
            return
        (_, _, before), self._waiting = self._waiting, None
        self._keep(inputs, differences(before, taken), outputs["candidate"])

    def suspect(self) -> Suspect | None:
        """The call that stands out most in an output, if one does."""
        standing = [(suspect.difference / self._usual(at), suspect) for at, suspect in self.worst.items()]
        ratio, suspect = max(standing, key=lambda each: each[0], default=(0.0, None))
        return suspect if ratio > STANDS_OUT else None

    def _usual(self, at: int) -> float:
        """The difference of the median call in an output."""
        found = sorted(self.differences[at])
        return max(found[len(found) // 2], LEAST_DIFFERENCE)

    def _keep(self, inputs: WindowInputs, found: list[list[float]], outputs: SecuredOutputs) -> None:
        """``found``: by output and call."""
        for at, by_call in enumerate(found):
            self.differences[at] += by_call
            i = max(range(len(by_call)), key=by_call.__getitem__)
            if by_call[i] > (self.worst[at].difference if at in self.worst else 0.0):
                self.worst[at] = Suspect(by_call[i], self.samples[at], inputs.kept(i), outputs.call(i))


class RepeatedCalls(ComparedCalls):
    """Compares samples of a random operator's calls with each other and with what lay in the call's place before."""

    def __init__(self, layout: WindowLayout, choose: random.Random) -> None:
        super().__init__(layout, choose)
        self._seen: set[bytes] = set()

    def note(self, side: str, inputs: WindowInputs, outputs: dict[str, SecuredOutputs]) -> None:
        if side != "candidate" or not self.samples:
            return
        secured, found = outputs[side], []
        places = secured.places
        in_order = torch.arange(len(places), device=places.device)
        for each in self.samples:
            after, before = each.of(secured.rows, places), each.of(inputs.rows, in_order)
            pairs = zip(_bytes(after), _bytes(before), strict=True)
            found.append([float(self._came_before(each.name, after, before)) for after, before in pairs])
        self._keep(inputs, found, secured)

    def suspect(self) -> Suspect | None:
        """A call that gave nothing new."""
        return next(iter(self.worst.values()), None)

    def _came_before(self, name: str, after: bytes, before: bytes) -> bool:
        key = name.encode() + after
        known = after == before or key in self._seen
        self._seen.add(key)
        return known


def compared_calls(layout: WindowLayout, choose: random.Random) -> ComparedCalls:
    """What fits the problem's kind."""
    random_kind = layout.overload.kind == Kind.RANDOM
    return (RepeatedCalls if random_kind else ComparedCalls)(layout, choose)


def samples_of(layout: WindowLayout, choose: random.Random) -> list[Sample]:
    """A choice of elements of every output of a case's calls."""
    generator = torch.Generator().manual_seed(choose.getrandbits(62))
    first, found = layout.first, []
    for name, chunk in first.inputs.chunks.items():
        if chunk.spec.access != Access.READ:
            size = itemsize(chunk.spec.dtype)
            start = (chunk.offset + GUARD_BYTES) // size + chunk.spec.offset
            found.append(_sample(name, chunk.spec.dtype, chunk.spec.shape, chunk.spec.strides, start, generator))
    start = first.out_offset
    for name, spec in zip(first.outputs, first.specs, strict=True):
        if not spec.shares:
            strides = row_major(tuple(spec.shape))
            place = start // itemsize(spec.dtype)
            found.append(_sample(name, spec.dtype, spec.shape, strides, place, generator))
        start += round_up(spec.nbytes, ALIGNMENT_BYTES)
    device = layout.judge.device
    return [
        Sample(each.name, each.dtype, each.logical.to(device), each.stored.to(device))
        for each in found
        if each.logical.numel()
    ]


def differences(first: list[torch.Tensor], second: list[torch.Tensor]) -> list[list[float]]:
    """By output and call: how far samples are apart, from 0 to 1.

    ``first``, ``second``: per output (calls, n) in its dtype. Finite elements count by the sum of their differences
    over the sum of their sizes, so that one that cancels says little; others by the share in which they are unlike.
    """
    pairs = [(_real(a), _real(b)) for a, b in zip(first, second, strict=True)]
    # One wait for the device for all outputs: this is done in a turn, once for two windows.
    sums = torch.stack([torch.stack(((a - b).abs().sum(1), (a.abs() + b.abs()).sum(1))) for a, b in pairs]).tolist()
    return [
        [min(apart / size, 1.0) if size else 0.0 for apart, size in zip(aparts, sizes, strict=True)]
        if all(map(math.isfinite, sizes))
        else _difference(*pair).tolist()
        for pair, (aparts, sizes) in zip(pairs, sums, strict=True)
    ]


def _difference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """float64 (calls,), where some elements are not finite, or too large to be added. ``a``, ``b``: as of ``_real``."""
    finite = torch.isfinite(a) & torch.isfinite(b)
    same = (a == b) | (torch.isnan(a) & torch.isnan(b))
    # Divided first, so that no sum overflows.
    a, b = (torch.where(finite, each, 0.0) / a.shape[1] for each in (a, b))
    size = (a.abs() + b.abs()).sum(dim=1)
    apart = torch.where(size > 0, (a - b).abs().sum(dim=1) / size, 0.0)
    unlike = (~finite & ~same).to(torch.float64).mean(dim=1)
    return torch.nan_to_num(apart, nan=1.0).clamp_max(1.0).maximum(unlike)


def _real(values: torch.Tensor) -> torch.Tensor:
    """float64 (calls, m)."""
    wide = torch.view_as_real(values).flatten(1) if values.is_complex() else values
    return widened(wide).to(torch.float64)


def _bytes(values: torch.Tensor) -> list[bytes]:
    """Each call's sample, as bytes."""
    return [each.tobytes() for each in values.contiguous().view(torch.uint8).cpu().numpy()]


def _sample(
    name: str,
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    start: int,
    generator: torch.Generator,
) -> Sample:
    count = math.prod(shape)
    logical = torch.arange(count) if count <= SAMPLED else torch.randint(count, (SAMPLED,), generator=generator)
    rest, stored = logical, torch.full_like(logical, start)
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        stored, rest = stored + rest % max(size, 1) * stride, rest // max(size, 1)
    return Sample(name, getattr(torch, dtype), logical, stored)
