"""Which device kernels are known to be the candidate's own: by what it wrote, launched and compiled. No torch.

A kernel's code is taken for the candidate's only if its name comes from there; every other kernel is a library's. A
list of libraries' names would always lack one. docs/design/0008-provenance.md says what this cannot see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_DRIVERS = ("Memcpy", "Memset", "[CUDA ")
"""Prefixes of the names of the driver's own operations."""
_UNNAMED: Final = {"kernel": "ElementwiseKernel", "reduce_kernel": "ReductionKernel"}
"""Names that CuPy gives to kernels which a candidate writes and does not name, and what makes them."""


class OwnKernels:
    """Knows the names of one candidate's kernels."""

    def __init__(self, source: str) -> None:
        self.written = frozenset(_IDENTIFIER.findall(source))
        """Identifiers of the candidate's text, whatever language they are in."""
        self.launched: set[str] = set()
        """Names of functions whose kernels Triton compiled and launched; packages' are known by module."""
        self.is_built: Callable[[str], bool] = lambda name: False
        """Whether a name stands in a file that a compiler wrote into the candidate's folder."""

    def add(self, launched: Iterable[str]) -> None:
        """What Triton was seen to launch."""
        self.launched.update(launched)

    def has(self, kernel: str) -> bool:
        """Whether a kernel, by the name that the device's tracer gives, is known to be the candidate's."""
        if kernel.startswith(_DRIVERS):
            return True
        # CuPy makes two kernels of a large reduction.
        name = re.sub(r"_pass[12]$", "", base_name(kernel))
        if name in self.written or name in self.launched or _UNNAMED.get(name) in self.written:
            return True
        # Triton has put the kinds of its arguments behind a function's name.
        if any(re.fullmatch(rf"{re.escape(each)}(?:_[0-9][0-9cde]*)+", name) for each in self.launched):
            return True
        return len(name) > 2 and self.is_built(name)


def base_name(kernel: str) -> str:
    """The function's own name out of one with its type, namespaces, template arguments and parameters."""
    text = kernel.replace("(anonymous namespace)", "anonymous").split("...")[0]
    found = _mangled(text) if text.startswith("_Z") else _IDENTIFIER.findall(_without_arguments(text))
    return found[-1] if found else ""


def _mangled(text: str) -> list[str]:
    """The names in front of the template arguments of a mangled one: ``ns`` and ``f`` of ``_ZN2ns1fIiEEvPi``."""
    rest, found = text.removeprefix("_Z").removeprefix("N"), []
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        found.append(rest[length.end() : end])
        rest = rest[end:]
    return found


def _without_arguments(text: str) -> str:
    """``a::f`` of ``void a::f<int, g<2> >(int)``; a return type may have template arguments, too."""
    depth, kept = 0, []
    for char in text:
        if char == "<":
            depth += 1
        elif char == ">":
            depth = max(0, depth - 1)
        elif depth == 0:
            if char == "(":
                break
            kept.append(char)
    return "".join(kept)
