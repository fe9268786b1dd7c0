"""Problems of some folders, kept once they are read: for programs that judge many candidates of one problem."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kgbench.problem.registry import Registry, load_problem, problem_folders

if TYPE_CHECKING:
    from kgbench.problem.model import Problem


class ProblemCache:
    """Reads each problem file at most once. Safe from any thread.

    A file that is edited afterwards is not read again, so all verdicts of one process are of one text.
    """

    def __init__(self, problem_dirs: Sequence[Path] = ()) -> None:
        """``problem_dirs`` come on top of the problems that ship. Raises UsageError for a folder without problems."""
        self.registry = Registry(problem_folders(problem_dirs))
        self._lock = threading.Lock()
        self._loaded: dict[str, Problem] = {}

    def load(self, name: str) -> Problem:
        """The problem of an id, or of a name that ``kgbench show`` takes. Raises UsageError, ProblemFileError."""
        with self._lock:
            if name not in self._loaded:
                chosen = self.registry.resolve(name).id
                if chosen not in self._loaded:
                    self._loaded[chosen] = load_problem(self.registry.paths[chosen])
                self._loaded[name] = self._loaded[chosen]
            return self._loaded[name]
