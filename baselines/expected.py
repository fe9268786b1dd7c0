"""What a reference returns when the value alone does not say how large an honest error may be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Expected:
    """The right output and, element by element, the scale of honest rounding error."""

    value: torch.Tensor
    """Shape of the output; float64, complex128 or exact integers."""
    magnitude: torch.Tensor | None = None
    """Shape of the output, float64: for a sum of products ``sqrt(sum((a*b)**2))``; None means ``abs(value)``."""

    def masked(self, live: torch.Tensor) -> Expected:
        """The same with zeros, which need no error, where ``live`` (bool, shape of the output) is False."""
        value = self.value.masked_fill(~live, 0)
        return Expected(value, None if self.magnitude is None else self.magnitude.masked_fill(~live, 0))
