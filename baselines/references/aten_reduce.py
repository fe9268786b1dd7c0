"""References of ATen problems: operators of two operands, reductions, losses and products of matrices.

Each function takes its entry's parameters by name; floating tensors arrive as float64, integers as they are. Operators
that torch itself computes right in float64 have an expression in their problem file instead.
"""

from __future__ import annotations

from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.aten import finite, is_exact, widened

ROUNDED_TERMS = 64
"""From as many terms on, a mean or sum of rounded 16-bit terms is as good as one of exact terms."""
SUM_ULPS = 16
"""How much less a float32 sum of that many terms is worth than one operation."""
Dims = list[int] | tuple[int, ...] | None
"""None and none listed both mean all."""
MEAN, TOTAL = 1, 2
"""What ATen calls ``reduction``; 0 is none."""


def sum(self: torch.Tensor, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Expected:
    """Along ``dim``, or all where that is None or empty; the error scale is the root of the sum of squares."""
    wanted = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    if is_exact(self) and (wanted is None or not wanted.is_floating_point):
        return Expected(torch.sum(self, dim or None, keepdim, dtype=wanted))
    terms = widened(self)
    return Expected(torch.sum(terms, dim or None, keepdim), root_of_squares(terms, dim, keepdim))


def root_of_squares(terms: torch.Tensor, dim: Dims, keepdim: bool) -> torch.Tensor:
    """The scale by which a sum of ``terms`` may be off, with 0 where it is not finite."""
    return finite(torch.sum(terms.abs().square(), dim or None, keepdim).sqrt())


def huber_loss(self: torch.Tensor, target: torch.Tensor, reduction: int = MEAN, delta: float = 1.0) -> Expected:
    """Square within ``delta``, linear beyond."""
    distance = (self - target).abs()
    return reduced(torch.where(distance <= delta, distance.square() / 2, delta * (distance - delta / 2)), reduction)


def reduced(losses: torch.Tensor, reduction: int, scale: torch.Tensor | None = None) -> Expected:
    """Losses as they are, their mean or their sum. ``scale``: what an element's own error is a multiple of."""
    scale = losses.abs() if scale is None else scale
    if reduction not in (MEAN, TOTAL):
        return Expected(losses, finite(scale))
    count = losses.numel()
    factor = SUM_ULPS if count >= ROUNDED_TERMS else 1
    value = losses.mean() if reduction == MEAN else losses.sum()
    return Expected(value, finite(factor * scale.sum() / (count if reduction == MEAN and count else 1)))


def mean(self: torch.Tensor, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Expected:
    """As ``sum``, divided by the number of terms."""
    terms = widened(self)
    value = torch.mean(terms, dim or None, keepdim)
    return Expected(value, root_of_squares(terms, dim, keepdim) * value.numel() / max(1, terms.numel()))
