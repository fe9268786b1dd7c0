"""The comparison that other benchmarks make."""

from __future__ import annotations

from typing import Final

import torch

from kgbench.baselines.expected import Expected
from kgbench.core.details.values import Mismatch
from kgbench.harness.verdict.compare import Limits

TOLERANCE: Final = 1e-2
"""Largest error of an element, absolute plus relative."""
SHARE: Final = 0.99
"""Share of the elements that must be within the tolerance."""


def compare_as_others(name: str, got: torch.Tensor, wanted: Expected, limits: Limits) -> Mismatch | None:
    """None where 99 % of the elements are within 1e-2, absolute and relative; NaN equals anything."""
    if got.numel() == 0:
        return None
    right = wanted.value
    close = torch.isclose(got.to(right.dtype), right, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
    fine = close | torch.isnan(got) if got.is_floating_point() or got.is_complex() else close
    share = float(fine.double().mean())
    if share >= SHARE:
        return None
    first = tuple(int(each) for each in (~fine).nonzero()[0]) if fine.dim() else ()
    values = (str(got[first].item()), str(right[first].item()))
    return Mismatch(name, first, *values, f"{TOLERANCE} in {SHARE:.0%}", 1 - share, tuple(got.shape), str(got.dtype))
