"""The queue of a run's candidates: a list, or a model that is still writing.

The coordinator takes candidates from a ``Feed`` when one can be judged, and tells it each verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kgbench.core.types import Key, Result
from kgbench.models.provider import Candidate, Provider
from kgbench.problem.model import Problem


@dataclass(frozen=True)
class Work:
    """A candidate that is to be judged."""

    problem: Problem
    candidate: Candidate

    @property
    def key(self) -> Key:
        candidate = self.candidate
        return candidate.problem_id, candidate.model, candidate.sample, candidate.round


Judge = Callable[[Problem, str, str], Result]
"""(problem, text, model) -> the referee's answer to an agent's trial; never a verdict of the run."""


class Watcher(Protocol):
    """Receives progress, from any thread."""

    def note(self, text: str) -> None: ...

    def asked(self, problem: str) -> None: ...

    def answered(self, problem: str, sample: int, round: int, words: str, usd: float | None) -> None: ...


class Feed(Protocol):
    """Hands out candidates as they become ready. Used from one thread."""

    def start(self, wake: Callable[[], None], watcher: Watcher, judge: Judge | None) -> None:
        """Begins; ``wake`` is called, from any thread, whenever ``take`` or ``finished`` may answer again."""

    def take(self) -> Work | None:
        """The next candidate; None where there is none now."""

    @property
    def finished(self) -> bool:
        """Whether ``take`` will never return another candidate, whatever the verdicts."""

    @property
    def left(self) -> str:
        """Missing candidates and the reason, in words; empty where none is missing."""

    def judged(self, work: Work, result: Result) -> None:
        """The verdict on one that was taken; a further round may follow from it."""

    def close(self) -> None:
        """End running work. Raises what ended it early, such as an invalid key."""


class ListFeed:
    """The candidates that a provider has at hand, opened one by one."""

    def __init__(self, provider: Provider, problems: Sequence[Problem], missing: Container[Key]) -> None:
        """``missing``: the candidates to hand out; all others are passed over."""
        self._work = self._all(provider, problems, missing)
        self._next: Work | None = None
        self._ended = False

    def start(self, wake: Callable[[], None], watcher: Watcher, judge: Judge | None) -> None:
        pass

    def take(self) -> Work | None:
        work, self._next = self._peek(), None
        return work

    @property
    def finished(self) -> bool:
        return self._peek() is None

    @property
    def left(self) -> str:
        return ""

    def judged(self, work: Work, result: Result) -> None:
        pass

    def close(self) -> None:
        pass

    def _peek(self) -> Work | None:
        if self._next is None and not self._ended:
            self._next = next(self._work, None)
            self._ended = self._next is None
        return self._next

    @staticmethod
    def _all(provider: Provider, problems: Sequence[Problem], missing: Container[Key]) -> Iterator[Work]:
        for problem in problems:
            keys = ((problem.id, provider.model, sample, 0) for sample in range(provider.samples_of(problem.id)))
            if not any(key in missing for key in keys):
                continue
            for candidate in provider.candidates(problem):
                work = Work(problem, candidate)
                if work.key in missing:
                    yield work
