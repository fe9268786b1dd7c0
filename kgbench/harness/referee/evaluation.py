"""What is known about one candidate while it is judged, and the result that is made of it in the end."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import torch

from kgbench.core.details.absence import NotOffered
from kgbench.core.details.failures import Raised
from kgbench.core.kinds import Phase
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Library, Result, Timing
from kgbench.core.verdicts import PASSED, Verdict
from kgbench.harness.attribution.observed import Attribution
from kgbench.harness.clock.modules import RunModule
from kgbench.harness.clock.securing import Late, charged
from kgbench.harness.machine import trace
from kgbench.harness.machine.languages import deadlines_for
from kgbench.harness.machine.settings import Job, RefereeSettings
from kgbench.harness.referee.defences import Defences
from kgbench.harness.referee.seeds import Seeds
from kgbench.harness.sandbox.plan import Plan
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.judges import judge_for
from kgbench.harness.verdict.modules.judge import ModuleJudge
from kgbench.harness.workers.handle import WorkerFailed
from kgbench.problem.cases import Case
from kgbench.problem.model import Overload, Problem
from kgbench.problem.modules import COMPILED

Report = Callable[[str, str], None]
"""Called with each phase that begins, and with what it is at, to show progress."""


@dataclass
class JudgedCase:
    """One case, and what was decided about it so far."""

    case: Case
    verdict: Verdict
    seconds: float
    """Wall time, in seconds, of its judging and timing."""
    timing: Timing | None = None
    late: Late | None = None
    """When the outputs of its timed calls were there."""

    def result(self) -> CaseResult:
        case, verdict = self.case, self.verdict
        return CaseResult(
            id=case.id,
            overload=case.overload,
            phase=case.phase,
            dtype=case.dtype,
            variables=case.variables,
            outcome=verdict.outcome,
            detail=verdict.detail,
            where=verdict.where,
            seconds=round(self.seconds, 4),
            timing=self.timing,
        )


@dataclass
class Evaluation:
    """What is known about one candidate so far."""

    job: Job
    problem: Problem
    settings: RefereeSettings
    defences: Defences
    device: torch.device
    now: Callable[[], float]
    """Seconds, not counting those in which this referee stood still."""
    started: float
    """Time at which it began, by ``now``."""
    interpreted: bool = False
    """True where Triton's interpreter runs the candidate: its times mean nothing."""
    cases: list[JudgedCase] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time of each phase, in seconds."""
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    """One for each overload that was judged, by its name."""
    library: Library | None = None
    log: str = ""
    peak_mb: float = 0.0
    """Largest memory of the candidate's process tree, in MB."""
    deterministic: bool | None = None
    """True where every call that was made twice with the same input gave the same bits; None where no call was."""
    preset: str = ""
    attribution: Attribution | None = None
    """What is known about whose work it is; None where nothing is watched."""

    def __post_init__(self) -> None:
        self.seeds = Seeds(self.settings.seed, self.job, self.device)
        self._judges: dict[str, OverloadJudge] = {}
        self.deadlines = deadlines_for(self.job.source, self.settings.deadlines)
        """The deadlines of the languages that the candidate is written in."""

    @property
    def is_correct(self) -> bool:
        """Whether every required overload passed all that was judged so far."""
        required = [overload.name for overload in self.problem.overloads if overload.required]
        return all(self.verdicts[name].outcome is Outcome.PASSED for name in required)

    @property
    def has_calls_to_time(self) -> bool:
        """Whether every required overload is correct. Of an installed package's kernel: whether a timed call is, since
        what is wrong in another call does not make that one slower.
        """
        if not self.job.adapted:
            return self.is_correct
        right = (each.case for each in self.cases if each.verdict is PASSED and each.case.phase is Phase.BENCH)
        required = {overload.name for overload in self.problem.overloads if overload.required}
        return any(case.overload in required for case in right)

    def is_not_offered(self, verdict: Verdict) -> bool:
        """Whether the judged package says that it does not offer this call."""
        return bool(self.job.adapted) and isinstance(verdict.detail, NotOffered)

    def said(self, failure: WorkerFailed) -> Verdict:
        """The outcome of a failure; for an installed package, NotImplementedError means that it does not offer the
        call.
        """
        verdict = failure.verdict
        raised = verdict.detail
        if not self.job.adapted or not isinstance(raised, Raised) or raised.name != "NotImplementedError":
            return verdict
        return replace(verdict, outcome=Outcome.NOT_OFFERED, detail=NotOffered(self.job.adapted, raised.message))

    def judge(self, overload: Overload) -> OverloadJudge:
        """The one judge of an overload's calls, which knows all of them: checked, timed and watched."""
        if overload.name not in self._judges:
            weights = self.seeds.shared("weights")
            self._judges[overload.name] = judge_for(overload, self.device, weights, self.defences.judge)
        return self._judges[overload.name]

    def module(self) -> RunModule | None:
        """The module that the problem is, and how candidates are timed beside it; None where it is none."""
        for overload in self.problem.overloads:
            judge = self.judge(overload) if overload.module is not None else None
            if isinstance(judge, ModuleJudge):
                compiled = overload.baseline.get(self.device.type) == COMPILED
                return RunModule(judge.module, overload.name, judge.weights, compiled, judge.passes_wrong)
        return None

    def cases_of(self, overload: Overload) -> list[JudgedCase]:
        return [judged for judged in self.cases if judged.case.overload == overload.name]

    def repeatable_cases_of(self, overload: Overload) -> list[JudgedCase]:
        """Those that are called more than once: all but the calls of phase ``large``, whose memory others lack."""
        return [judged for judged in self.cases_of(overload) if judged.case.phase is not Phase.LARGE]

    def keep_log(self, failure: WorkerFailed) -> None:
        if failure.log:
            self.log = failure.log

    def note_bits(self, same: bool | None) -> None:
        """Record whether a call that was made twice gave the same bits; None where that cannot be said."""
        if same is not None:
            self.deterministic = same and self.deterministic is not False

    def charge_late_outputs(self) -> None:
        """Add to the times by how much outputs came late, where that is more than noise, once all cases are timed."""
        timed = [(each, (each.timing, each.late)) for each in self.cases if each.timing and each.late]
        for (judged, _), timing in zip(timed, charged([pair for _, pair in timed]), strict=True):
            judged.timing = timing

    @contextmanager
    def phase(self, name: str, **args: str) -> Iterator[None]:
        """Adds the block's wall time to a phase; ``args`` stand beside it in a timeline."""
        begun = self.now()
        try:
            with trace.span(name, **args):
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self.now() - begun

    def result(self, plan: Plan) -> Result:
        """The result, once everything is judged. ``plan``: the sandbox that the candidate ran in."""
        problem, job = self.problem, self.job
        failed = self._first_failure()
        self.seconds["total"] = self.now() - self.started
        return Result(
            problem=problem.id,
            model=job.model,
            sample=job.sample,
            round=job.round,
            outcome=failed.outcome,
            detail=failed.detail,
            where=failed.where,
            adapted=job.adapted,
            candidate_sha256=job.candidate_sha256,
            problem_sha256=problem.sha256,
            source=problem.source,
            kind=problem.kind,
            device=self.device.type,
            interpreted=self.interpreted,
            deterministic=self.deterministic,
            preset=self.preset,
            overloads={name: str(verdict.outcome) for name, verdict in self.verdicts.items()},
            cases=tuple(judged.result() for judged in self.cases),
            library=self.library,
            sandbox=plan.states(),
            seconds={name: round(value, 4) for name, value in self.seconds.items()},
            memory_mb={
                "worker": self.peak_mb,
                "referee": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 1),
            },
            policy=self.settings.policy if job.trusted is None else None,
            evidence=() if self.attribution is None else self.attribution.kept(),
            log_tail=self.log if failed is not PASSED else self.log[-2000:],
        )

    def _first_failure(self) -> Verdict:
        """The verdict on the first required overload that did not pass, one that counts first; PASSED where all did."""
        verdicts = [self.verdicts[overload.name] for overload in self.problem.overloads if overload.required]
        failed = [verdict for verdict in verdicts if verdict is not PASSED]
        return min(failed, key=lambda verdict: not verdict.outcome.facts.counts, default=PASSED)


def library_key(case: Case | CaseResult) -> str:
    """The key under which a bench case's library times are kept."""
    return f"{case.overload}/{case.id}"
