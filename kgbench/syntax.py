"""``ast.parse`` for several threads: CPython 3.11 counts how deep a tree is in one place for all of them.

Two threads that parse at once may then raise ``SystemError: AST constructor recursion depth mismatch``
(python/cpython#106905), so that one waits for the other here.
"""

from __future__ import annotations

import ast
import threading
from typing import Any, Final

_LOCK: Final = threading.Lock()


def parse(text: str, mode: str = "exec") -> Any:
    """The tree of a Python text; raises what ``ast.parse`` raises."""
    with _LOCK:
        return ast.parse(text, mode=mode)
