"""What a problem's cases are, call by call, from its file alone: layouts, draws, numbers, flags."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from kgbench.core.kinds import Phase
from kgbench.problem.cases import BoundCase, bind, expand_for_all_devices
from kgbench.problem.cases.concrete import TensorSpec
from kgbench.problem.model import Access, Overload, Problem, plain_type

NUMBERS: Final = ("float", "complex", "Scalar")
"""Types of parameters that are numbers, and no sizes or places."""
FLAGS: Final = ("bool", "str", "dtype")
"""Types of parameters that are one of few values."""


@dataclass(frozen=True)
class Drawn:
    """What a tensor that is read holds, as far as its draw says."""

    spec: TensorSpec
    name: str
    numbers: tuple[float, ...]
    """The numbers in its arguments, in order; complex ones by their size."""

    @classmethod
    def all_of(cls, specs: Iterable[TensorSpec]) -> list[Drawn]:
        """Those that are read, of some tensors, and have elements."""
        read = [spec for spec in specs if spec.access != Access.WRITE and spec.elements]
        return [cls(spec, spec.draw.name, tuple(_numbers(spec.draw.arguments))) for spec in read]

    @property
    def is_special(self) -> bool:
        return self.name == "special"

    @property
    def largest(self) -> float:
        """About the largest finite size of a value."""
        if self.name == "normal":
            mean, deviation = (*self.numbers, *(0.0, 1.0)[len(self.numbers) :])[:2]
            return abs(mean) + 3 * deviation
        return max((abs(each) for each in self.numbers if math.isfinite(each)), default=1.0)

    @property
    def is_whole(self) -> bool:
        return self.spec.dtype.startswith(("int", "uint"))

    @property
    def is_floating(self) -> bool:
        return self.spec.dtype.startswith(("float", "bfloat", "complex"))


@dataclass
class Facts:
    """A problem's cases, all overloads that are judged together."""

    problem: Problem
    calls: list[tuple[Overload, BoundCase]]
    values: dict[str, set[Any]] = field(default_factory=lambda: defaultdict(set))
    """By parameter that is no tensor, what the calls give it; of tensors ``None`` or ``"a tensor"``."""

    @classmethod
    def of(cls, problem: Problem) -> Facts:
        overloads = [each for each in problem.judged if each.required]
        found = cls(problem, [(each, bind(each, case)) for each in overloads for case in _cases(each)])
        for overload, bound in found.calls:
            for parameter, argument in zip(overload.signature.parameters, bound.arguments, strict=True):
                value = "a tensor" if argument.specs else argument.value
                found.values[f"{parameter.name}: {parameter.type}"].add(_hashable(value))
        return found

    @cached_property
    def specs(self) -> list[TensorSpec]:
        """Every tensor of every call."""
        return [spec for _, bound in self.calls for spec in bound.specs]

    @cached_property
    def drawn(self) -> list[Drawn]:
        """Every tensor that is read."""
        return Drawn.all_of(self.specs)

    def parameters(self, types: tuple[str, ...]) -> dict[str, set[Any]]:
        """What parameters of these types are given, None left out."""
        return {
            name: values - {None}
            for name, values in self.values.items()
            if plain_type(name.partition(": ")[2]) in types and values - {None, "a tensor"}
        }

    @property
    def numbers(self) -> set[Any]:
        """Every number that some parameter is given."""
        return {each for values in self.parameters(NUMBERS).values() for each in values if isinstance(each, _NUMBER)}

    @property
    def is_blas(self) -> bool:
        return self.problem.source == "cublas"

    @property
    def takes_floats(self) -> bool:
        return any(each.is_floating for each in self.drawn)

    @property
    def takes_whole(self) -> bool:
        return any(each.is_whole for each in self.drawn)

    def some_call(self, phase: Phase) -> bool:
        return any(bound.case.phase == phase for _, bound in self.calls)


_NUMBER: Final = (int, float, complex)


def _cases(overload: Overload) -> Iterator[Any]:
    return iter(expand_for_all_devices(overload, "kinds of cases"))


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, (list, tuple)):
        for each in value:
            yield from _numbers(each)
    elif isinstance(value, _NUMBER):
        yield abs(value) if isinstance(value, complex) else float(value)


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value
