"""From outputs of a random operator to the numbers that are tested. Referee side only."""

from __future__ import annotations

from typing import Final

import torch

from kgbench.baselines.expected import Sampled
from kgbench.harness.verdict.random.battery import Numbers, codes_of

MOST_SAMPLES: Final = {"cuda": 1 << 22, "cpu": 1 << 17}
"""Most elements of one output that are tested, by the kind of device; of more, stretches spread over the output."""
STRETCHES: Final = 16
"""Number of these stretches."""


def numbers_of(sampled: Sampled, got: torch.Tensor, generator: torch.Generator) -> Numbers:
    """What the elements of an output that chance decides should be uniform numbers of, at most ``MOST_SAMPLES``."""
    free = sampled.free.expand(sampled.shape)
    chosen = _spread(free.reshape(-1).nonzero()[:, 0], MOST_SAMPLES[got.device.type], generator)

    def flat(values: torch.Tensor) -> torch.Tensor:
        return values.expand(sampled.shape).reshape(-1)[chosen]

    return Numbers(
        flat(sampled.uniform(got, generator)),
        codes_of(flat(got)),
        flat(sampled.bits(got.dtype)),
        None if sampled.beside is None else flat(sampled.beside),
        sampled.allowed(got.dtype),
    )


def joined(parts: list[Numbers]) -> Numbers:
    """Several outputs of one operator as one, one behind the other."""
    beside = [part.beside for part in parts if part.beside is not None]
    return Numbers(
        torch.cat([part.uniform for part in parts]),
        torch.cat([part.codes for part in parts]),
        torch.cat([part.bits for part in parts]),
        torch.cat(beside) if len(beside) == len(parts) else None,
        max(part.allowance for part in parts),
    )


def random_bits(sampled: Sampled, dtype: torch.dtype) -> float:
    """At least ``-log2`` of the chance that a whole output comes out alike twice."""
    return float(torch.where(sampled.free, sampled.bits(dtype), 0.0).sum())


def _spread(places: torch.Tensor, most: int, generator: torch.Generator) -> torch.Tensor:
    """At most so many of them: stretches that begin somewhere, among them the first and the last."""
    if len(places) <= most:
        return places
    length = most // STRETCHES
    gap = (len(places) - most) // (STRETCHES - 1)
    moved = torch.randint(0, gap + 1, (STRETCHES,), generator=generator, device=generator.device)
    moved[0] = 0
    starts = torch.arange(STRETCHES, device=places.device) * (length + gap) + moved.to(places.device)
    starts[-1] = len(places) - length
    return places[(starts[:, None] + torch.arange(length, device=places.device)).reshape(-1)]
