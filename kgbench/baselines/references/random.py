"""Distributions of ATen's random operators, from which a sample is judged without knowing the numbers drawn.

Each function takes its entry's parameters by name; floating tensors arrive as float64.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from kgbench.baselines.expected import Expected, Follows, Sampled

IMPOSSIBLE: Final = 1e-22
"""Probability beyond a value below which no honest kernel gives that value in any number of runs."""
NORMAL_POISSON: Final = 4000.0
"""Rate above which cuRAND rounds a normal number to get a Poisson one."""


def bernoulli(self: torch.Tensor, p: Any = None, generator: Any = None, out: Any = None) -> Sampled:
    """1 with probability p, else 0. p is ``self`` itself, a number, or a tensor that broadcasts to ``self``."""
    chance = self if p is None else torch.as_tensor(p, dtype=torch.float64, device=self.device)
    return Bernoulli(chance.to(torch.float64).expand(self.shape))


def exponential(self: torch.Tensor, lambd: float = 1.0, generator: Any = None) -> Sampled:
    """Density lambd * exp(-lambd x) on the positive numbers; what ``self`` held does not matter."""
    return Exponential(float(lambd), self)


def poisson(self: torch.Tensor, generator: Any = None, out: Any = None) -> Sampled:
    """k with probability rate**k exp(-rate) / k!, the rates in ``self``."""
    return Poisson(self)


def rrelu_with_noise(
    self: torch.Tensor,
    noise: torch.Tensor,
    lower: Any = 0.125,
    upper: Any = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> dict[str, Any]:
    """In training noise is uniform in [lower, upper] where self <= 0 and 1 elsewhere, and the result self * noise.

    Else noise stays and the slope is the mean of the bounds. Where self is NaN noise is 1, as in ATen.
    """
    low, high = float(lower), float(upper)
    if not training:
        result = torch.where(self > 0, self, self * ((low + high) / 2))
        return {"noise": Follows(noise.shape, lambda outputs: noise), "return": Expected(result)}

    def product(outputs: Mapping[str, torch.Tensor]) -> torch.Tensor:
        # Exact in float64 for every narrower dtype, so that rounding it gives what one multiplication does.
        return self * outputs["noise"].to(torch.float64)

    return {"noise": Slope(self, low, high), "return": Follows(self.shape, product, rounded=True)}


def rrelu_with_noise_out(self: torch.Tensor, noise: torch.Tensor, out: Any = None, **others: Any) -> dict[str, Any]:
    """The same into ``out``."""
    outputs = rrelu_with_noise(self, noise, **others)
    return {"noise": outputs["noise"], "out": outputs["return"]}


@dataclass(frozen=True)
class Bernoulli(Sampled):
    chance: torch.Tensor
    """float64, shape of the output: the probability of 1."""

    @property
    def shape(self) -> torch.Size:
        return self.chance.shape

    @property
    def free(self) -> torch.Tensor:
        return (self.chance > 0) & (self.chance < 1)

    @property
    def beside(self) -> torch.Tensor:
        return self.chance

    def possible(self, got: torch.Tensor) -> torch.Tensor:
        return ((got == 1) & (self.chance > 0)) | ((got == 0) & (self.chance < 1))

    def uniform(self, got: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        place = _unit(self.chance, generator)
        return torch.where(got == 1, 1 - self.chance * place, (1 - self.chance) * place)

    def bits(self, dtype: torch.dtype) -> torch.Tensor:
        return -(self.chance**2 + (1 - self.chance) ** 2).log2()

    def draw(self, dtype: torch.dtype, generator: torch.Generator | None) -> torch.Tensor:
        return (_unit(self.chance, generator) < self.chance).to(dtype)


@dataclass(frozen=True)
class Exponential(Sampled):
    rate: float
    like: torch.Tensor
    """Has the output's shape and device."""

    @property
    def shape(self) -> torch.Size:
        return self.like.shape

    @property
    def free(self) -> torch.Tensor:
        return torch.full(self.shape, math.isfinite(self.rate), device=self.like.device)

    def possible(self, got: torch.Tensor) -> torch.Tensor:
        """Not negative, and no further out than chance reaches; 0 and infinity only where a value rounds to it."""
        if not math.isfinite(self.rate):
            return got == 0
        low, high = cell(got)
        reached = (torch.exp(-self.rate * low.clamp_min(0)) > IMPOSSIBLE) & (self._below(high) > IMPOSSIBLE)
        return (got >= 0) & reached

    def uniform(self, got: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        low, high = cell(got)
        return _between(self._below(low.clamp_min(0)), self._below(high), generator)

    def bits(self, dtype: torch.dtype) -> torch.Tensor:
        return torch.full(self.shape, _mantissa_bits(dtype) - 2.0, dtype=torch.float64, device=self.like.device)

    def draw(self, dtype: torch.dtype, generator: torch.Generator | None) -> torch.Tensor:
        values = torch.empty(self.shape, dtype=torch.float64, device=self.like.device)
        return values.exponential_(self.rate, generator=generator).to(dtype)

    def _below(self, value: torch.Tensor) -> torch.Tensor:
        """The probability of a smaller value."""
        return -torch.expm1(-self.rate * value)


@dataclass(frozen=True)
class Poisson(Sampled):
    rate: torch.Tensor
    """float64, shape of the output."""

    @property
    def shape(self) -> torch.Size:
        return self.rate.shape

    @property
    def free(self) -> torch.Tensor:
        return self.rate > 0

    @property
    def beside(self) -> torch.Tensor:
        return self.rate

    def possible(self, got: torch.Tensor) -> torch.Tensor:
        """Whole numbers, none negative, no further out than chance reaches; at a rate of 0 only 0."""
        whole = torch.isfinite(got.to(torch.float64)) & (got >= 0) & (got.to(torch.float64).floor() == got)
        low, high = self._steps(torch.where(whole, got, torch.zeros_like(got)))
        reached = (self._below(high) > IMPOSSIBLE) & (self._from(low) > IMPOSSIBLE)
        return whole & torch.where(self.free, reached, got == 0)

    def uniform(self, got: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        low, high = self._steps(got)
        return _between(self._below(low), self._below(high), generator)

    def bits(self, dtype: torch.dtype) -> torch.Tensor:
        """The sum of the squared probabilities is exp(-2 rate) I0(2 rate); a dtype that rounds adds its steps."""
        step = (self.rate * torch.finfo(dtype).eps).clamp_min(1.0)
        alike: torch.Tensor = torch.special.i0e(2 * self.rate) * step
        return -alike.clamp_max(1.0).log2()

    def draw(self, dtype: torch.dtype, generator: torch.Generator | None) -> torch.Tensor:
        """NaN where there is no such rate, as a kernel gives that reads past its input; torch raises."""
        known = torch.isfinite(self.rate) & (self.rate >= 0)
        counts = torch.poisson(torch.where(known, self.rate, 0.0), generator=generator)
        return torch.where(known, counts, math.nan).to(dtype)

    def allowed(self, dtype: torch.dtype) -> float:
        """The skewness that a normal number lacks, where one may stand in for a large rate's."""
        return 1 / (6 * math.sqrt(2 * math.pi * NORMAL_POISSON)) if bool((self.rate > NORMAL_POISSON).any()) else 0.0

    def _steps(self, got: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The least whole number that is rounded to an output, and the least that is rounded to the next."""
        low, high = cell(got)
        first, last = low.ceil().clamp_min(0), high.floor()
        value = got.to(torch.float64)
        # One halfway between two outputs goes to the even one.
        first = torch.where(first.to(got.dtype).to(torch.float64) == value, first, first + 1)
        last = torch.where(last.to(got.dtype).to(torch.float64) == value, last, last - 1)
        return first, last + 1

    def _below(self, count: torch.Tensor) -> torch.Tensor:
        """The probability of less than ``count``, whole numbers."""
        return torch.where(count > 0, torch.special.gammaincc(count.clamp_min(1), self.rate), 0.0)

    def _from(self, count: torch.Tensor) -> torch.Tensor:
        return torch.where(count > 0, torch.special.gammainc(count.clamp_min(1), self.rate), 1.0)


@dataclass(frozen=True)
class Slope(Sampled):
    """The noise of a randomised leaky ReLU in training."""

    input: torch.Tensor
    lower: float
    upper: float

    @property
    def shape(self) -> torch.Size:
        return self.input.shape

    @property
    def free(self) -> torch.Tensor:
        return self._sloped & (self.lower < self.upper)

    @property
    def beside(self) -> torch.Tensor:
        return self.input

    def possible(self, got: torch.Tensor) -> torch.Tensor:
        """Within the bounds, rounded, and an ulp beside for the arithmetic of the dtype."""
        low, high = cell(got)
        ulp = high - low
        within = (high + ulp >= self.lower) & (low - ulp <= self.upper)
        return torch.where(self._sloped, within, got == 1)

    def uniform(self, got: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        low, high = ((side - self.lower) / (self.upper - self.lower) for side in cell(got))
        return _between(low.clamp(0, 1), high.clamp(0, 1), generator)

    def bits(self, dtype: torch.dtype) -> torch.Tensor:
        """By the number of the dtype's values between the bounds, less than the densest have."""
        largest = max(abs(self.lower), abs(self.upper), torch.finfo(dtype).tiny)
        values = (self.upper - self.lower) / (largest * torch.finfo(dtype).eps)
        bits = max(min(math.log2(max(values, 1.0)), _mantissa_bits(dtype) - 1.0) - 1.0, 0.0)
        return torch.where(self.free, bits, 0.0).to(torch.float64)

    def draw(self, dtype: torch.dtype, generator: torch.Generator | None) -> torch.Tensor:
        slope = self.lower + (self.upper - self.lower) * _unit(self.input, generator)
        return torch.where(self._sloped, slope, 1.0).to(dtype)

    def allowed(self, dtype: torch.dtype) -> float:
        """In 16 bits ATen rounds the uniform number before it is scaled."""
        return torch.finfo(dtype).eps / 2 if dtype.itemsize == 2 else 0.0

    @property
    def _sloped(self) -> torch.Tensor:
        return self.input <= 0


def cell(got: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Between which numbers lies what is rounded to a value of a floating dtype; float64, exact below float64.

    Integers are their own cell. NaN gives NaN.
    """
    value = got.to(torch.float64)
    if not got.is_floating_point() or got.dtype == torch.float64:
        return value, value
    info = torch.finfo(got.dtype)
    mantissa, exponent = torch.frexp(value.abs())
    least = round(math.log2(info.smallest_normal * info.eps))
    digits = round(-math.log2(info.eps))
    last = torch.where(mantissa > 0, exponent - 1 - digits, least).clamp_min(least)
    step = torch.ldexp(torch.ones_like(value), last)
    inner = torch.where((mantissa == 0.5) & (last > least), step / 2, step)
    low, high = value.abs() - inner / 2, value.abs() + step / 2
    largest = info.max * (1 + info.eps / 4)
    infinite = torch.isinf(value)
    low = torch.where(infinite, largest, low)
    high = torch.where(infinite, math.inf, high)
    negative = value < 0
    return torch.where(negative, -high, low), torch.where(negative, -low, high)


def _between(low: torch.Tensor, high: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return low + (high - low) * _unit(low, generator)


def _unit(like: torch.Tensor, generator: torch.Generator | None) -> torch.Tensor:
    """float64 in [0, 1), of a tensor's shape."""
    return torch.rand(like.shape, dtype=torch.float64, device=like.device, generator=generator)


def _mantissa_bits(dtype: torch.dtype) -> float:
    """What a random number has of a dtype's precision: float32 kernels make 23 bits, for float64 as well."""
    return min(-math.log2(torch.finfo(dtype).eps), 23.0)
