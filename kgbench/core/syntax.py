"""``ast.parse`` for several threads: CPython 3.11 counts how deep a tree is in one place for all of them.

Two threads that parse at once may then raise ``SystemError: AST constructor recursion depth mismatch``
(python/cpython#106905), so that one waits for the other here. What Python would warn of in a text is its author's
matter and is not printed.
"""

from __future__ import annotations

import ast
import threading
import warnings
from typing import Any, Final

_LOCK: Final = threading.Lock()


def parse(text: str, mode: str = "exec") -> Any:
    """The tree of a Python text, which may begin with a byte order mark; raises what ``ast.parse`` raises."""
    with _LOCK, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text.removeprefix("\ufeff"), mode=mode)
