"""What is right for a module's call, and how far an honest kernel may be off: as far as PyTorch's float32, widened.

With ``v`` the module's output in float64 and ``e`` the distance of the same module in its own dtypes from it, with the
same inputs or with inputs whose positive elements are a rounding smaller, an element may be off by

    FACTOR * E(|v|) + 2 * ULPS * u * |v| + smallest normal number of float32

``E(m)`` is the largest ``e`` of all elements that are not above m by more than a power of two: what is small may be off
by what small elements are off, not by what large ones are. ``u`` is the unit roundoff of float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from kgbench.baselines.expected import Answer, Expected
from kgbench.harness.verdict.compare import pieces
from kgbench.harness.verdict.modules.trusted import TrustedModule, copied
from kgbench.harness.verdict.reference import ReferenceFunction

FACTOR: Final = 16.0
"""How much further than PyTorch's own float32 an element may be off. docs/kernelbench.md has what kernels need."""
ULPS: Final = 16.0
"""Half of how many unit roundoffs an element may be off where PyTorch happens to be exact."""
LEAST_ELEMENTS: Final = 1024
"""Elements whose errors are looked at, at least: an output of fewer is computed again with slightly other inputs."""
MOST_ELEMENTS: Final = 1 << 22
"""Elements whose errors are looked at, at most: of larger outputs so many drawn ones."""
MOST_RUNS: Final = 8
"""Times that an output of few elements is computed at most."""
ROUNDED_SHARE: Final = 2.0**-20
"""Largest error that counts of inputs that are a rounding smaller, as a share of the largest element: 16 roundings."""
_NEARBY: Final = 1e-3
"""Share by which the inputs of such another run are smaller, at most."""
_LEAST_IN_BIN: Final = 64
"""Elements below which powers of two are taken together, from the smallest on."""
_LOWEST: Final = -160
_HIGHEST: Final = 160
"""Powers of two that have a bin of their own; all beyond share the last."""
_UNIT: Final = 2.0**-24
"""Unit roundoff of float32."""
_SMALLEST_NORMAL: Final = 2.0**-126
_MANTISSA_BITS: Final = 52
_EXPONENT_MASK: Final = 0x7FF
_EXPONENT_OF_ONE_HALF: Final = 1022
"""The parts of a float64: bits of its mantissa, those of its exponent, and the exponent's bits of 0.5."""


@dataclass
class Errors:
    """How far float32 is from float64, by the size of the element."""

    worst: torch.Tensor
    """float64 (bins,): the largest error of each power of two."""
    count: torch.Tensor
    """int64 (bins,)"""
    finite: bool = True
    """True where everything was finite in both."""
    share: float = 0.0
    """The largest error, as a share of the largest element."""
    largest: float = 0.0
    """The largest element."""

    @classmethod
    def none(cls, device: torch.device) -> Errors:
        bins = _HIGHEST - _LOWEST + 1
        return cls(torch.zeros(bins, dtype=torch.float64, device=device),
                   torch.zeros(bins, dtype=torch.int64, device=device))  # fmt: skip

    def add(self, own: torch.Tensor, exact: torch.Tensor, *, rounded: bool = False) -> None:
        """Add one output. ``own``: in its own dtype, ``exact``: in float64, of the same shape. ``rounded``: its inputs
        were a rounding smaller than those of ``exact``, which says nothing about whether float32 is near enough.
        """
        narrow, wide = _some(own).to(torch.float64), _some(exact)
        error = (narrow - wide).abs()
        # Zeros that both have, as between the strides of a transposed convolution, say nothing about small elements.
        usable = torch.isfinite(error) & ((wide != 0) | (error != 0))
        wide, error = wide[usable], error[usable]
        if rounded:
            error.clamp_(max=ROUNDED_SHARE * self.largest)
        at = _bins(wide)
        self.worst.scatter_reduce_(0, at, error, "amax")
        if rounded:
            return
        self.count += torch.bincount(at, minlength=len(self.count))
        self.finite = self.finite and _all_finite(own) and _all_finite(exact)
        largest = float(wide.abs().max()) if wide.numel() else 0.0
        self.largest = max(self.largest, largest)
        if largest:
            self.share = max(self.share, float(error.max()) / largest)

    def magnitudes(self, exact: torch.Tensor) -> torch.Tensor:
        """float64, shape of the output: of what number the rounding limit is how far each element may be off on account
        of float32.
        """
        together = self.worst.cummax(0).values
        enough = (self.count.cumsum(0) >= _LEAST_IN_BIN).nonzero()
        first = int(enough[0]) if len(enough) else len(self.worst) - 1
        together[:first] = together[first]
        if len(seen := (self.count > 0).nonzero()):
            # Of the largest elements none may have been looked at: they may be off by the same share.
            beyond = torch.arange(len(together), device=exact.device) - seen.max()
            together *= torch.exp2(beyond.clamp(min=0).to(torch.float64))
        of_bin = (FACTOR * together + _SMALLEST_NORMAL) / (2 * ULPS * _UNIT)
        found = torch.empty_like(exact, memory_format=torch.contiguous_format)
        for values, out in zip(pieces(exact), pieces(found), strict=True):
            torch.take(of_bin, _bins(values), out=out)
        return found


def _some(output: torch.Tensor) -> torch.Tensor:
    """All elements in row-major order, or MOST_ELEMENTS of them, the same ones of any output of that size."""
    flat = output.reshape(-1)
    if len(flat) <= MOST_ELEMENTS:
        return flat
    generator = torch.Generator(output.device).manual_seed(0)
    return flat[torch.randint(len(flat), (MOST_ELEMENTS,), generator=generator, device=output.device)]


def _all_finite(output: torch.Tensor) -> bool:
    """By the sum, which needs no memory."""
    return math.isfinite(float(output.sum(dtype=torch.float64)))


def _bins(values: torch.Tensor) -> torch.Tensor:
    """int64: the power of two of each element, from 0; of zero the lowest. ``values``: float64."""
    exponents = (values.view(torch.int64) >> _MANTISSA_BITS).bitwise_and_(_EXPONENT_MASK)
    return exponents.sub_(_EXPONENT_OF_ONE_HALF + _LOWEST).clamp_(0, _HIGHEST - _LOWEST)


@dataclass(frozen=True)
class Shape:
    """What the outputs of a call look like."""

    dtypes: tuple[str, ...] = ()
    sizes: tuple[tuple[int, ...], ...] = ()
    errors: tuple[Errors, ...] = field(default=(), compare=False)
    """Error bounds of each output; not used for outputs of whole numbers."""

    @property
    def is_sound(self) -> bool:
        """Everything is finite, and float32 is near enough to float64 for a limit that means something."""
        return all(each.finite and each.share <= SOUND for each in self.errors)


SOUND: Final = 1e-2
"""Largest error of float32, as a share of the largest element, at which a limit still means something."""


class ModuleReference(ReferenceFunction):
    """The module in float64, with limits from its own dtypes."""

    def __init__(self, module: TrustedModule) -> None:
        self.module = module
        self.returned_argument = ""
        self.last = Shape()
        """Shape of the last call that was requested."""

    def answers(self, arguments: Mapping[str, Any], written: tuple[str, ...]) -> dict[str, Answer]:
        """Right outputs by name. ``arguments``: by parameter, in the file's own order."""
        inputs = list(arguments.values())
        own, exact = self.module.run(inputs), self.module.run_exact(inputs)
        errors = self._errors(inputs, own, exact)
        dtypes = tuple(str(each.dtype).removeprefix("torch.") for each in own)
        self.last = Shape(dtypes, tuple(tuple(each.shape) for each in own), errors)
        names = ["return"] if len(own) == 1 else [f"return[{number}]" for number in range(len(own))]
        return {
            name: Expected(value, each.magnitudes(value) if value.is_floating_point() else None)
            for name, value, each in zip(names, exact, errors, strict=True)
        }

    def _errors(
        self, inputs: Sequence[Any], own: Sequence[torch.Tensor], exact: Sequence[torch.Tensor]
    ) -> tuple[Errors, ...]:
        found = tuple(Errors.none(self.module.device) for _ in own)
        _enter(found, own, exact)
        fewest = min((each.numel() for each in own), default=0)
        generator = torch.Generator(self.module.device).manual_seed(0)
        for _ in range(min(MOST_RUNS, -(-LEAST_ELEMENTS // max(fewest, 1))) - 1):
            nearby = [_nearby(each, generator) for each in inputs]
            _enter(found, self.module.run(nearby), self.module.run_exact(nearby))
        _enter(found, self.module.run(inputs, a_rounding_smaller), exact, rounded=True)
        return found


def _enter(
    errors: Sequence[Errors], own: Sequence[torch.Tensor], exact: Sequence[torch.Tensor], *, rounded: bool = False
) -> None:
    for each, narrow, wide in zip(errors, own, exact, strict=True):
        if narrow.is_floating_point():
            each.add(narrow, wide, rounded=rounded)


def _nearby(value: Any, generator: torch.Generator) -> Any:
    """A tensor's elements up to a thousandth smaller, so that they round otherwise."""
    if not (isinstance(value, torch.Tensor) and value.is_floating_point()):
        return value
    drawn = torch.rand(value.shape, generator=generator, device=value.device)
    return (value * (1 - _NEARBY * drawn)).to(value.dtype)


def a_rounding_smaller(value: Any) -> Any:
    """A tensor's positive elements smaller by the unit roundoff of its dtype, all others as they are.

    Errors of sums over many elements average out in PyTorch's order and need not in another one: a mean of numbers
    around 0 is off by 1e-9 of their size there, and by 2e-8 where the first is subtracted before they are summed.
    No element's magnitude grows, so that whatever is defined on an interval stays inside.
    """
    if not (isinstance(value, torch.Tensor) and value.is_floating_point()):
        return copied(value)
    info = torch.finfo(value.dtype)
    return value - value.clamp(0, info.max) * (info.eps / 2)
