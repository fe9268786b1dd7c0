"""Whose code runs while a candidate is timed: unscored windows in the midst of the timed ones, sampled from outside.

A candidate that works itself as soon as it is watched had others work before, and it is timed before it is watched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kgbench.harness.attribution.code import Code
from kgbench.harness.attribution.samples import Mappings, Sampler
from kgbench.harness.workers.started import WorkerSide
from kgbench.problem.cases import Case


class TimedCode:
    """Samples windows of one candidate's cases while they are timed."""

    def __init__(self, side: WorkerSide, before: Mappings, found: dict[str, Code]) -> None:
        """``found`` takes what is found, by case."""
        self.side = side
        self.before = before
        self.found = found

    @contextlib.contextmanager
    def sampled(self, case: Case, calls: int) -> Iterator[Sampler | None]:
        """One window of so many calls; None where the kernel gives no samples."""
        try:
            sampler = Sampler(self.side.handle.supervisor_pid, self.before)
        except OSError as error:
            self._code(case).failure = str(error)
            yield None
            return
        with contextlib.closing(sampler):
            yield sampler
            self._code(case).add(sampler.found(calls))

    def is_enough(self, case: Case) -> bool:
        return self._code(case).is_enough

    def _code(self, case: Case) -> Code:
        return self.found.setdefault(f"{case.overload} {case.id}".strip(), Code())
