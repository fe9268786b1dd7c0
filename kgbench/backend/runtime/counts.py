"""How often a kernel ran and how often the call went elsewhere, per operator."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any, Final

MOST_REASONS: Final = 50
"""Different reasons that are kept per operator; further ones count as "other reasons"."""
_OTHER: Final = "other reasons"


class Counts:
    """Calls of one operator. Threads may count at once: a backward pass runs in one of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        with self._lock:
            self._kernel, self._otherwise, self._why = 0, 0, Counter[str]()

    def kernel(self) -> None:
        """Count a call of the kernel."""
        with self._lock:
            self._kernel += 1

    def otherwise(self, why: str) -> None:
        """Count a call that was left to the library."""
        with self._lock:
            self._otherwise += 1
            self._why[why if why in self._why or len(self._why) < MOST_REASONS else _OTHER] += 1

    def shown(self, library: str) -> dict[str, Any]:
        """``{"kernel": 3, "aten": 1, "why": {"form not judged: …": 1}}`` with the library's name."""
        with self._lock:
            return {"kernel": self._kernel, library: self._otherwise, "why": dict(self._why.most_common())}
