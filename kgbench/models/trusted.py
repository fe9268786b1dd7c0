"""Shared by ``baseline`` and ``reference``: the project's own code in the candidate's place, without a text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgbench.models.provider import Candidate
from kgbench.problem.model import Problem


@dataclass(frozen=True)
class TrustedProvider:
    model: str
    timed: bool
    trusted: str
    """``baseline`` or ``reference``, whatever name it was asked for by."""
    notes: Sequence[str] = ()

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        return ids

    def samples_of(self, problem_id: str) -> int:
        return 1

    def candidates(self, problem: Problem) -> Iterable[Candidate]:
        return (Candidate(problem.id, self.model, trusted=self.trusted),)
