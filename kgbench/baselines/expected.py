"""What a reference returns when the value alone does not say how large an honest error may be, or is not one value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Expected:
    """The correct output and, element by element, the scale of honest rounding error."""

    value: torch.Tensor
    """Shape of the output; float64, complex128 or exact integers."""
    magnitude: torch.Tensor | None = None
    """Shape of the output, float64: for a sum of products ``sqrt(sum((a*b)**2))``; None means ``abs(value)``."""
    also: Expected | None = None
    """Another correct output of the same shape: each element may be that of either."""

    @property
    def shape(self) -> torch.Size:
        return self.value.shape

    def masked(self, live: torch.Tensor) -> Expected:
        """The same with zeros, which need no error, where ``live`` (bool, shape of the output) is False."""
        value = self.value.masked_fill(~live, 0)
        also = None if self.also is None else self.also.masked(live)
        return Expected(value, None if self.magnitude is None else self.magnitude.masked_fill(~live, 0), also)


class Sampled(ABC):
    """A random output, by its distribution: which values are possible, and which numbers it makes of them.

    If an output is distributed as it should be, ``uniform`` makes independent uniform numbers on (0, 1) of it: the
    probability integral transform, with a random place within the step of a discrete value and within what rounds to
    an output in its dtype. ``kgbench/harness/verdict/random/battery.py`` tests those.
    """

    allowance: float = 0.0
    """Largest difference between the distribution functions of an honest output and the correct one, at any point."""

    @property
    @abstractmethod
    def shape(self) -> torch.Size:
        """Of the output."""

    @property
    @abstractmethod
    def free(self) -> torch.Tensor:
        """bool, shape of the output: the elements that chance decides. The others have one possible value."""

    @property
    def beside(self) -> torch.Tensor | None:
        """float64, shape of the output: what differs from element to element and leaves the uniform numbers alone."""
        return None

    @abstractmethod
    def possible(self, got: torch.Tensor) -> torch.Tensor:
        """bool, shape of the output: the elements of ``got`` that can come out at all."""

    @abstractmethod
    def uniform(self, got: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """float64, shape of the output: the numbers; only where ``free`` and possible do they mean anything."""

    @abstractmethod
    def bits(self, dtype: torch.dtype) -> torch.Tensor:
        """float64, shape of the output: at least ``-log2`` of the chance that an element comes out alike twice."""

    @abstractmethod
    def draw(self, dtype: torch.dtype, generator: torch.Generator | None) -> torch.Tensor:
        """An honest output; without a generator from the default one of the device."""

    def allowed(self, dtype: torch.dtype) -> float:
        """``allowance`` in an output's dtype."""
        return self.allowance


@dataclass(frozen=True)
class Follows:
    """An output that another one decides, whatever that turned out to be; equal to the last bit."""

    shape: torch.Size
    value: Callable[[Mapping[str, torch.Tensor]], torch.Tensor]
    """Takes the outputs that follow from nothing, by name, in their own dtypes. float64 or exact integers."""
    rounded: bool = False
    """True where an output of 16 bits may be computed from another output before that one was rounded; the problem's
    tolerance allows for it.
    """


Answer = Expected | Sampled | Follows
