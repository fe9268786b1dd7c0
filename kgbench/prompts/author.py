"""What the author of a kernel knows already, so that it may be named: all other names and numbers are left out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from kgbench.problem.expressions import ITEMSIZE
from kgbench.problem.model import Problem

MOST_DIMENSIONS: Final = 16
"""Number of dimensions, and of returned tensors, up to which it is told."""
PLAIN_TYPES: Final = frozenset(
    (
        "NoneType", "Tensor", "Parameter", "bool", "complex", "dict", "float", "int", "list", "ndarray", "set", "str",
        "tuple",
    )
)  # fmt: skip
"""Types of what an entry may return by mistake, which are told by their name."""


@dataclass(frozen=True)
class Author:
    """What the author of a kernel knows, so that it may be named."""

    problem: Problem
    code: str

    @cached_property
    def words(self) -> frozenset[str]:
        """The identifiers of the kernel's own text."""
        return frozenset(re.findall(r"\w+", self.code))

    @cached_property
    def parameters(self) -> frozenset[str]:
        return frozenset(each.name for overload in self.problem.overloads for each in overload.signature.parameters)

    def output(self, name: str) -> str:
        if name == "return":
            return "the result"
        several = {f"return[{number}]" for number in range(MOST_DIMENSIONS)}
        return f"`{name}`" if name in self.parameters or name in several else "an output"

    def argument(self, name: str) -> str:
        return f"`{name}`" if name in self.parameters else "an argument"

    def dtype(self, name: str) -> str:
        return name if name in ITEMSIZE else "another dtype"

    def type(self, name: str) -> str:
        return name if name in PLAIN_TYPES or name in self.words else "something else"

    def count(self, dimensions: tuple[int, ...]) -> str:
        return str(len(dimensions)) if len(dimensions) <= MOST_DIMENSIONS else "many"
