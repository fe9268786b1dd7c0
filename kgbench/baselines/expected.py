"""Results of references that need more than one value: a scale of honest errors, alternatives, or a distribution."""

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
    """Another correct output of the same shape; each element may equal that of either output."""

    @property
    def shape(self) -> torch.Size:
        return self.value.shape

    def flat(self) -> Expected:
        """The same with one dimension, in row-major order."""
        return self._each(lambda tensor: tensor.reshape(-1))

    def part(self, of: slice) -> Expected:
        """A part of the first dimension."""
        return self._each(lambda tensor: tensor[of])

    def _each(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Expected:
        magnitude = None if self.magnitude is None else change(self.magnitude)
        return Expected(change(self.value), magnitude, None if self.also is None else self.also._each(change))

    def masked(self, live: torch.Tensor) -> Expected:
        """The same with zeros, which allow no error, where ``live`` (bool, shape of the output) is False."""
        value = self.value.masked_fill(~live, 0)
        also = None if self.also is None else self.also.masked(live)
        return Expected(value, None if self.magnitude is None else self.magnitude.masked_fill(~live, 0), also)


class Sampled(ABC):
    """A random output, by its distribution: the possible values, and their transform to uniform numbers.

    If an output has the correct distribution, ``uniform`` transforms it to independent uniform numbers on (0, 1). This
    is the probability integral transform, with a random position within the step of a discrete value and within the
    numbers that round to an output in its dtype. ``kgbench/harness/verdict/random/battery.py`` tests those.
    """

    allowance: float = 0.0
    """Largest difference between the distribution functions of an honest output and the correct one, at any point."""

    @property
    @abstractmethod
    def shape(self) -> torch.Size:
        """Shape of the output."""

    @property
    @abstractmethod
    def free(self) -> torch.Tensor:
        """bool, shape of the output: the random elements. The others have one possible value."""

    @property
    def beside(self) -> torch.Tensor | None:
        """float64, shape of the output: a quantity that differs between elements and must not influence the uniform
        numbers.
        """
        return None

    @abstractmethod
    def possible(self, got: torch.Tensor) -> torch.Tensor:
        """bool, shape of the output: the elements of ``got`` that are possible values."""

    @abstractmethod
    def uniform(self, got: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """float64, shape of the output: the numbers; they have a meaning only where ``free`` and possible are true."""

    @abstractmethod
    def bits(self, dtype: torch.dtype) -> torch.Tensor:
        """float64, shape of the output: at least ``-log2`` of the probability that an element is equal in two draws."""

    @abstractmethod
    def draw(self, dtype: torch.dtype, generator: torch.Generator | None) -> torch.Tensor:
        """Draw a correct output; without a generator, from the device's default one."""

    def allowed(self, dtype: torch.dtype) -> float:
        """``allowance`` in an output's dtype."""
        return self.allowance


@dataclass(frozen=True)
class Follows:
    """An output that follows from the other outputs as the candidate returned them; it must be equal bit for bit."""

    shape: torch.Size
    value: Callable[[Mapping[str, torch.Tensor]], torch.Tensor]
    """Takes the independent outputs, by name, in their own dtypes. Returns float64 or exact integers."""
    rounded: bool = False
    """Whether an output of 16 bits may be computed from another output before that one was rounded; the problem's
    tolerance allows for it.
    """


Answer = Expected | Sampled | Follows
