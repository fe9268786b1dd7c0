"""Functions of numpy that count calls by a candidate: work of the host that no tracer sees."""

from __future__ import annotations

import functools
import sys
from time import thread_time_ns  # a candidate may replace that of the module
from typing import Any, Final

import torch

HOST_FUNCTIONS: Final = ("dot", "einsum", "inner", "matmul", "tensordot", "vdot")
"""Functions of numpy that do a whole problem in one call of the host's library; counted however small the arrays."""
HOST_LARGE: Final = 1024
"""Elements of an array from which a call of any other function of numpy is counted."""
OWN_CALLERS: Final = ("numpy", "triton", "kgbench")
"""Packages whose calls of numpy are not counted: Triton's interpreter calls it on its own account."""
_MOST_OWN: Final = 1000
"""Modules of which that is remembered."""
_OWN: Final[dict[str, bool]] = {}
"""Whether modules are of OWN_CALLERS, by name: Triton's interpreter calls numpy for every value that a kernel has."""


def _is_own(name: object) -> bool:
    known = _OWN.get(name) if type(name) is str else None
    if known is None:
        known = str(name).partition(".")[0] in OWN_CALLERS
        if type(name) is str and len(_OWN) < _MOST_OWN:
            _OWN[name] = known
    return known


class HostFunction:
    """A function of numpy's, a ufunc with its methods too, that counts calls which may do a problem's work."""

    def __init__(self, name: str, function: Any) -> None:
        self._counts: dict[str, int] = {}
        self._spent_ns = [0, 0]
        self._name, self._function = name, function
        self._is_whole = name.removeprefix("numpy.") in HOST_FUNCTIONS
        # Packages that are imported now, numpy.ma among them, read the names and docstrings of numpy's functions.
        functools.update_wrapper(self, function, updated=())

    @property
    def counts_for(self) -> Any:
        """The function that it stands for."""
        return self._function

    def counts_into(self, counts: dict[str, int], spent_ns: list[int]) -> HostFunction:
        """From now on calls are entered here."""
        self._counts, self._spent_ns = counts, spent_ns
        return self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if _is_own(sys._getframe(1).f_globals.get("__name__", "")):
            return self._function(*args, **kwargs)
        if self._is_whole or any(map(_is_large, (*args, *kwargs.values()))):
            self._counts[self._name] = self._counts.get(self._name, 0) + 1
        begun_ns = thread_time_ns()
        try:
            return self._function(*args, **kwargs)
        finally:
            self._spent_ns[0] += thread_time_ns() - begun_ns
            self._spent_ns[1] += 1

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._function, name)
        is_method = callable(found) and not name.startswith("_")
        if not is_method:
            return found
        return HostFunction(f"{self._name}.{name}", found).counts_into(self._counts, self._spent_ns)


def _is_large(value: Any) -> bool:
    """An array or a tensor of many elements."""
    size = getattr(value, "size", 0)
    count = value.numel() if isinstance(value, torch.Tensor) else size
    return isinstance(count, int) and count >= HOST_LARGE
