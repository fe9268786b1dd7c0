"""Which results are judged a second time, with the device for themselves, and results of what was never judged."""

from __future__ import annotations

from typing import Final

from kgbench.core.outcomes import Outcome
from kgbench.core.text import told
from kgbench.core.types import Result
from kgbench.harness.machine.settings import LIBRARY_FAILED, Job
from kgbench.harness.machine.timing_lock import DISTURBED, STAYS_BUSY

NO_ROOM: Final = "too little memory to judge this (--jobs sets how many are judged at once)"
"""Begin of the reason of a result for which the referee or the library lacked memory."""
MOST_REASON: Final = 4000
"""Characters of the reason of a result that no referee made."""
CROWDED: Final = "memory ran out beside others"
"""Why a candidate is judged again when it, the referee or the library lacked memory."""


def perhaps_a_neighbours_doing(result: Result) -> str:
    """What another candidate on the device may have caused, in words for the progress; else nothing."""
    if result.outcome.facts.may_be_crowded or result.reason.startswith(NO_ROOM):
        return CROWDED
    if result.library is not None and result.library.reason.startswith(LIBRARY_FAILED):
        return "the library failed beside others"
    if result.outcome is Outcome.HARNESS_ERROR and DISTURBED in result.reason:
        return DISTURBED
    busy = result.outcome in (Outcome.REJECTED, Outcome.HARNESS_ERROR) and STAYS_BUSY in result.reason
    return "the device stayed busy beside others" if busy else ""


def without_evaluation(job: Job, outcome: Outcome, reason: str, device_kind: str) -> Result:
    """The result of a job that no referee has judged."""
    problem = job.problem
    return Result(
        problem=problem.id,
        model=job.model,
        sample=job.sample,
        outcome=outcome,
        reason=told(reason, MOST_REASON),
        candidate_sha256=job.candidate_sha256,
        problem_sha256=problem.sha256,
        source=problem.source,
        kind=problem.kind,
        device=device_kind,
        round=job.round,
    )
