"""A candidate's text as a module, and an exception that it raised as data."""

from __future__ import annotations

import ast
import importlib.util
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from kgbench.harness.wire.protocol import Message

MAX_TRACEBACK_CHARS: Final = 6000
"""Characters of a traceback that are sent, from its end."""
MAX_MESSAGE_CHARS: Final = 2000
"""Characters of an exception's message that are sent, from its start."""
MODULE: Final = "kernel"
"""The name under which a candidate is imported."""


def load_source(source: str, folder: Path) -> Any:
    """Import a candidate's text as a module of its own; Triton needs it to be a file."""
    path = folder / f"{MODULE}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return module


def entries_of(module: Any, names: Mapping[str, Sequence[str]]) -> dict[str, Callable[..., Any]]:
    """For each overload the first of its names that the module has a function of; those of which it has none are left
    out.
    """
    found = {key: next(filter(callable, (getattr(module, each, None) for each in some)), None)
             for key, some in names.items()}  # fmt: skip
    return {key: entry for key, entry in found.items() if entry is not None}


def describe_error(error: BaseException) -> Message:
    """An exception as data: its types by name, its words and the end of its traceback.

    Triton's interpreter wraps what a kernel raises once for each function on the way: what was wrapped is described.
    """
    text = "".join(traceback.format_exception(error))
    while type(error).__name__ == "InterpreterError" and error.__cause__ is not None:
        error = error.__cause__
    names = [f"{cls.__module__}.{cls.__qualname__}" for cls in type(error).__mro__]
    try:
        words = str(error)
    except Exception:
        words = "(its message cannot be shown)"
    return {"types": names[:-1], "message": words[:MAX_MESSAGE_CHARS], "traceback": text[-MAX_TRACEBACK_CHARS:]}


def functions(source: str) -> list[str]:
    """Names of the functions that a text defines at its top level; the text may begin with a byte order mark."""
    return [node.name for node in ast.parse(source.removeprefix("\ufeff")).body if isinstance(node, ast.FunctionDef)]


def classes(source: str) -> list[str]:
    """Names of the classes that a text defines at its top level."""
    return [node.name for node in ast.parse(source.removeprefix("\ufeff")).body if isinstance(node, ast.ClassDef)]
