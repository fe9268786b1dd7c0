"""Up to which sizes a kernel must be right, as prompts promise: the largest of all calls of a problem, rounded up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from kgbench.core.kinds import Phase
from kgbench.problem.cases.bind import bind
from kgbench.problem.cases.concrete import BoundArgument
from kgbench.problem.cases.expand import expand_for_all_devices
from kgbench.problem.model import Overload, PassedAs

ALWAYS: Final = 256
"""A bound that is never lower, so that it tells nothing of small calls."""
ALWAYS_ELEMENTS: Final = 10**6
"""The same of a tensor's elements."""
MOST_ROWS: Final = 2**31 - 1
"""Is not rounded: what is counted in 32 bits ends here."""
_SEEDS: Final = ("a", "b", "c")
"""Of the random calls that are looked at. Other seeds draw others, so that twice as much is promised of them."""


@dataclass
class Sizes:
    """Bounds by argument. An argument that no call has is in neither."""

    shapes: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    """Of tensors, and of lists of whole numbers, by number of dimensions: the largest size of each one."""
    elements: dict[str, dict[int, int]] = field(default_factory=dict)
    """Of tensors, by number of dimensions: the most elements. No call may be as long in all dimensions at once."""
    numbers: dict[str, int] = field(default_factory=dict)
    """Of whole numbers: the largest in size."""

    def _add(self, argument: BoundArgument, *, drawn: bool) -> None:
        value = argument.value
        if isinstance(value, int) and not isinstance(value, bool):
            self.numbers[argument.name] = max(self.numbers.get(argument.name, 0), _bound(abs(value), drawn=drawn))
        for shape in _shapes(argument):
            bounds = tuple(_bound(abs(size), drawn=drawn) for size in shape)
            known = self.shapes.setdefault(argument.name, {})
            known[len(shape)] = tuple(map(max, bounds, known.get(len(shape), bounds)))
        for shape in _tensors(argument):
            counts = self.elements.setdefault(argument.name, {})
            count = max(ALWAYS_ELEMENTS, _bound(math.prod(shape), drawn=drawn))
            counts[len(shape)] = max(count, counts.get(len(shape), 0))


def sizes_of(overload: Overload) -> Sizes:
    """The bounds of an overload, over the calls of all devices. Raises ExpressionError as ``bind`` does."""
    found = Sizes()
    for seed in _SEEDS:
        for case in expand_for_all_devices(overload, seed):
            if case.phase is Phase.FUZZ or seed == _SEEDS[0]:
                for argument in bind(overload, case).arguments:
                    found._add(argument, drawn=case.phase is Phase.FUZZ)
    return found


def _shapes(argument: BoundArgument) -> Iterable[tuple[int, ...]]:
    yield from _tensors(argument)
    if isinstance(argument.value, tuple) and argument.value and all(type(each) is int for each in argument.value):
        yield argument.value


def _tensors(argument: BoundArgument) -> Iterable[tuple[int, ...]]:
    """Storage is passed without a shape: the numbers beside it say how large it is."""
    return (spec.shape for spec in argument.specs if spec.passed != PassedAs.STORAGE)


def _bound(size: int, *, drawn: bool) -> int:
    """The next number of two digits and zeros, for instance 34,000,000 of 33,554,433."""
    size = 2 * size if drawn else size
    if size <= ALWAYS:
        return ALWAYS
    if size == MOST_ROWS:
        return size
    unit: int = 10 ** (len(str(size)) - 2)
    return -(-size // unit) * unit
