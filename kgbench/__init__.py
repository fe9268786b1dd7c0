"""kgbench: is this GPU kernel right, and is it faster than the library?

Importing this package costs nothing: no torch, no device query, no file read. ``Evaluator`` judges kernels from Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kgbench.evaluator import Evaluator as Evaluator

__all__ = ["Evaluator", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Evaluator":
        from kgbench.evaluator import Evaluator

        return Evaluator
    raise AttributeError(f"module 'kgbench' has no attribute {name!r}")
