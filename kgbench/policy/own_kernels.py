"""Decides by name which device kernels are the candidate's own. Imports no torch.

A kernel is the candidate's own if its name is in the candidate's source, in what Triton launched, or in a file that a
compiler wrote for it. Every other kernel counts as a library's: a list of all libraries' kernels is never complete.
docs/design/0008-provenance.md says what this cannot see.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_DRIVERS = ("Memcpy", "Memset", "[CUDA ")
"""Prefixes of the names that the tracer gives to the driver's own copies and fills."""
_UNNAMED: Final = {"kernel": "ElementwiseKernel", "reduce_kernel": "ReductionKernel"}
"""CuPy's default names for kernels that a candidate does not name, with the CuPy class that makes each."""


class OwnKernels:
    """The names of one candidate's kernels."""

    def __init__(self, source: str) -> None:
        self.written = frozenset(_IDENTIFIER.findall(source))
        """All identifiers in the candidate's source, in any language."""
        self.launched: set[str] = set()
        """Names of functions that Triton compiled and launched."""
        self.is_built: Callable[[str], bool] = lambda name: False
        """Whether a name is in a file that a compiler wrote into the candidate's folder."""

    def add(self, launched: Iterable[str]) -> None:
        """Adds names of functions that Triton launched."""
        self.launched.update(launched)

    def has(self, kernel: str) -> bool:
        """Whether a kernel is the candidate's own. ``kernel``: its name in the device's trace."""
        if kernel.startswith(_DRIVERS):
            return True
        # CuPy splits a large reduction into two kernels.
        name = re.sub(r"_pass[12]$", "", base_name(kernel))
        if name in self.written or name in self.launched or _UNNAMED.get(name) in self.written:
            return True
        # Some versions of Triton append the specialization of the arguments to a function's name.
        if any(re.fullmatch(rf"{re.escape(each)}(?:_[0-9][0-9cde]*)+", name) for each in self.launched):
            return True
        return len(name) > 2 and self.is_built(name)


def base_name(kernel: str) -> str:
    """The function's name alone, without return type, namespaces, template arguments and parameters."""
    text = kernel.replace("(anonymous namespace)", "anonymous").split("...")[0]
    found = _mangled(text) if text.startswith("_Z") else _IDENTIFIER.findall(_without_arguments(text))
    return found[-1] if found else ""


def _mangled(text: str) -> list[str]:
    """The names before the template arguments of a mangled name: ``ns`` and ``f`` for ``_ZN2ns1fIiEEvPi``."""
    rest, found = text.removeprefix("_Z").removeprefix("N"), []
    while length := re.match(r"\d+", rest):
        end = length.end() + int(length[0])
        found.append(rest[length.end() : end])
        rest = rest[end:]
    return found


def _without_arguments(text: str) -> str:
    """The text before the parameters, without template arguments: ``void a::f`` for ``void a::f<int, g<2> >(int)``."""
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
