"""Serializes a problem, to send it from the process that read its file to those that judge with it."""

from __future__ import annotations

import base64
import enum
import io
import pickle
from typing import Any, Final

from kgbench.problem.model import Problem

_MODULES: Final = ("kgbench.problem.", "kgbench.core.kinds", "pathlib", "ast")
"""Prefixes of the modules whose classes a pickled problem may name. ``complex`` is the one exception."""


def packed(problem: Problem) -> str:
    """The problem as ASCII text (a pickle in base64). For trusted processes only."""
    file = io.BytesIO()
    _Writer(file, pickle.HIGHEST_PROTOCOL).dump(problem)
    return base64.b64encode(file.getvalue()).decode()


def unpacked(text: str) -> Problem:
    """The problem, equal to the one that was packed. Raises ValueError when the text is not a packed problem."""
    try:
        found = _Reader(io.BytesIO(base64.b64decode(text))).load()
    except (pickle.UnpicklingError, EOFError, AttributeError, ImportError, IndexError) as error:
        raise ValueError(f"not a problem: {error}") from None
    if not isinstance(found, Problem):
        raise ValueError(f"not a problem: {type(found).__name__}")
    return found


class _Writer(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """Pickles an enum member as its class and value. Python 3.11.0 to 3.11.3 would pickle a call of ``getattr``."""
        return (type(value), (value.value,)) if isinstance(value, enum.Enum) else NotImplemented


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """Raises UnpicklingError for a class that no problem contains."""
        if (module, name) != ("builtins", "complex") and (not module.startswith(_MODULES) or "." in name):
            raise pickle.UnpicklingError(f"{module}.{name} is no part of one")
        found = super().find_class(module, name)
        if not isinstance(found, type):
            raise pickle.UnpicklingError(f"{module}.{name} is no class")
        return found
