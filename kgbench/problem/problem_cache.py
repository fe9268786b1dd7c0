"""A cache of problems, for programs that judge many candidates of one problem."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kgbench.problem.registry import Registry, load_problem, problem_folders

if TYPE_CHECKING:
    from kgbench.problem.model import Problem


class ProblemCache:
    """Reads each problem file at most once. Any thread may use it.

    A file that is edited later is not read again, so that all verdicts of a process use the same problem.
    """

    def __init__(self, problem_dirs: Sequence[Path] = ()) -> None:
        """``problem_dirs``: folders with problems, besides those of kgbench. Raises UsageError when one has none."""
        self.registry = Registry(problem_folders(problem_dirs))
        self._lock = threading.Lock()
        self._loaded: dict[str, Problem] = {}

    def load(self, name: str) -> Problem:
        """The problem with an id, or with a name that ``kgbench show`` takes.

        Raises UsageError when there is no such problem, ProblemFileError when its file is wrong.
        """
        with self._lock:
            if name not in self._loaded:
                chosen = self.registry.resolve(name).id
                if chosen not in self._loaded:
                    self._loaded[chosen] = load_problem(self.registry.paths[chosen])
                self._loaded[name] = self._loaded[chosen]
            return self._loaded[name]
