"""Which candidates are judged again, alone on their device, and results of candidates that were never judged."""

from __future__ import annotations

from typing import Final

from kgbench.core.details.absence import Fault, HarnessTrouble
from kgbench.core.details.failures import Breach, RuleBroken
from kgbench.core.details.union import Detail
from kgbench.core.outcomes import Outcome
from kgbench.core.text import told
from kgbench.core.types import Result
from kgbench.harness.machine.settings import Job

MOST_WORDS: Final = 4000
"""Most characters of a result's detail that no referee wrote."""
CROWDED: Final = "memory ran out beside others"
"""Why a candidate is judged again when it, the referee or the library lacked memory."""
BUSY: Final = "the device stayed busy beside others"
"""Why a candidate is judged again when others' work on the device did not end."""
PASSING: Final = frozenset({BUSY, str(Fault.DISTURBED)})
"""Reasons that are over once another candidate has ended: the candidate is judged beside others again, and alone only
if that does not help.
"""


def perhaps_a_neighbours_doing(result: Result) -> str:
    """Why the result may be caused by another candidate on the device; empty where it is not."""
    match result.detail:
        case HarnessTrouble(fault=Fault.NO_ROOM):
            return CROWDED
        case HarnessTrouble(fault=Fault.DISTURBED):
            return str(Fault.DISTURBED)
        case HarnessTrouble(fault=Fault.BUSY_DEVICE):
            return BUSY
        case RuleBroken(breach=Breach.BUSY_DEVICE):
            return "it seemed to keep the device busy"
    if result.outcome.facts.may_be_crowded:
        return CROWDED
    if result.library is not None and result.library.failed:
        return "the library failed beside others"
    return ""


def trouble(fault: Fault, words: str) -> HarnessTrouble:
    """The error, as one line."""
    return HarnessTrouble(fault, told(words, MOST_WORDS))


def no_room(words: str) -> HarnessTrouble:
    """Whether the referee or the library ran out of memory."""
    words_told = f"too little memory to judge this (--jobs sets how many are judged at once): {words}"
    return trouble(Fault.NO_ROOM, words_told)


def without_evaluation(job: Job, outcome: Outcome, detail: Detail | None, device_kind: str) -> Result:
    """The result of a job that no referee has judged."""
    problem = job.problem
    return Result(
        problem=problem.id,
        model=job.model,
        sample=job.sample,
        outcome=outcome,
        detail=detail,
        adapted=job.adapted,
        candidate_sha256=job.candidate_sha256,
        problem_sha256=problem.sha256,
        source=problem.source,
        kind=problem.kind,
        device=device_kind,
        round=job.round,
    )
