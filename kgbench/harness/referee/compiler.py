"""Spares a referee the import of PyTorch's compiler, which takes seconds; nothing is compiled here.

PyTorch's rules for shapes and dtypes (operators on meta tensors) are Python functions, of which many are kept from the
compiler by ``torch._dynamo.disable``. That alone imports all of it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final, TypeVar

COMPILER: Final = "torch._dynamo"
F = TypeVar("F", bound=Callable[..., Any])


class _StandIn(ModuleType):
    """Stands in for ``torch._dynamo`` until more than ``disable`` is needed, such as by a reference that compiles."""

    @staticmethod
    def disable(function: F, recursive: bool = True, **_more: object) -> F:
        """The function itself: nobody compiles what calls it."""
        return function

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__path__":  # asked of every module, for instance by ``inspect``
            raise AttributeError(name)
        if sys.modules.get(COMPILER) is self:
            del sys.modules[COMPILER]
        return getattr(importlib.import_module(COMPILER), name)


def put_off() -> None:
    """Import the compiler when it is needed. Does nothing where it is imported already."""
    sys.modules.setdefault(COMPILER, _StandIn(COMPILER))
