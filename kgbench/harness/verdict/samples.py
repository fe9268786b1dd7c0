"""Which rows of a huge call are judged. The candidate computes all of them, and never learns which are looked at.

A reference in float64 needs many times the memory of a call of 2³¹ elements. Where a row of the output follows from the
same row of the arguments, it is asked about some rows alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import torch

from kgbench.problem.cases import BoundCase, sampled_rows

DRAWN: Final = 4096
"""Rows that are drawn from the call's secret generator."""
EDGE: Final = 32
"""Rows on either side of the first, the last, and every power of two from ``FIRST_EDGE`` on."""
FIRST_EDGE: Final = 1 << 28
"""The smallest power of two where an offset of 1 to 16 bytes an element may overflow 32 bits."""


@dataclass(frozen=True)
class Samples:
    """Rows of one dimension, of every tensor that has as many there as the largest."""

    dimension: int
    size: int
    rows: torch.Tensor
    """int64, ascending, without repeats."""

    @classmethod
    def drawn(cls, bound: BoundCase, generator: torch.Generator) -> Samples | None:
        """Those of a call; None where all is judged."""
        if bound.case.samples is None:
            return None
        size = sampled_rows(bound)
        random = torch.randint(0, size, (DRAWN,), generator=generator, device=generator.device)
        around = torch.tensor(edges(size), device=generator.device)
        return cls(bound.case.samples, size, torch.unique(torch.cat([random, around])))

    def of(self, value: Any) -> Any:
        """A tensor's rows, or those of each in a list; anything else, and a tensor of other rows, as it is."""
        if isinstance(value, list):
            return [self.of(each) for each in value]
        if not isinstance(value, torch.Tensor) or not -value.dim() <= self.dimension < value.dim():
            return value
        if value.shape[self.dimension] != self.size:
            return value
        return value.index_select(self.dimension, self.rows.to(value.device))


def edges(size: int) -> list[int]:
    """Rows near the ends and near powers of two."""
    middles = [0, size]
    power = FIRST_EDGE
    while power < size:
        middles.append(power)
        power *= 2
    return sorted({row for at in middles for row in range(at - EDGE, at + EDGE) if 0 <= row < size})
