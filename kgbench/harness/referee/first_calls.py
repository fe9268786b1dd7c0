"""First calls of cases, kept from candidate to candidate of one problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from kgbench.harness.referee.evaluation import Evaluation
from kgbench.harness.referee.seeds import Seeds
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.problem.cases import Case

CACHED_CALL_BYTES: Final = 8 << 20
"""Largest call, in bytes of its inputs and outputs, that is kept."""


class FirstCalls:
    """First calls of the cases of the problem that was judged last, with what is right for them."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str], PlacedCall] = {}
        self._kept_for = ("", False)
        """The problem's hash, and whether the job is practice."""

    def of(self, evaluation: Evaluation, judge: OverloadJudge, case: Case) -> PlacedCall:
        """The first call of a case: the same for all candidates of a problem, so that its oracle runs once.

        Candidates cannot tell each other what they saw. Repeated and timed calls are each candidate's own.
        """
        kept_for = (evaluation.problem.sha256, evaluation.job.practice)
        if self._kept_for != kept_for:
            self._kept_for, self._calls = kept_for, {}
        key = (judge.overload.name, case.id)
        call = self._calls.get(key)
        if call is None:
            call = first_call(evaluation.seeds, judge, case)
            if call.end <= CACHED_CALL_BYTES:
                call = replace(call, remembers=True)
                self._calls[key] = call
        return call


def first_call(seeds: Seeds, judge: OverloadJudge, case: Case) -> PlacedCall:
    """Drawn again, with the values that it has for all candidates."""
    return judge.place(case, seeds.shared_generator(f"{judge.overload.name}/{case.id}"))
