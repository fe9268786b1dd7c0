"""The judge: owns seeds, inputs, oracle, clock and verdict; runs no candidate code. Several per device.

Asks the fork server for workers, and judges them through memory that it shares with them and owns. Referees of one
device work side by side and take turns at timing. ``process.py`` is their process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kgbench.baselines.registry import load_function
from kgbench.core.details.failures import Breach, Crash, RuleBroken
from kgbench.core.kinds import DeviceKind, PolicyMode
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.core.verdicts import Verdict
from kgbench.harness.clock.library import crash_advice
from kgbench.harness.clock.library_times import LibraryTimes
from kgbench.harness.machine.languages import uses_of
from kgbench.harness.machine.settings import DEVICE_PROBE, Job
from kgbench.harness.referee.checking import Checker
from kgbench.harness.referee.defences import STRICT, Defences
from kgbench.harness.referee.evaluation import Evaluation, Report, library_key
from kgbench.harness.referee.resources import Resources
from kgbench.harness.referee.room import give_back, room_to_begin
from kgbench.harness.referee.speed import Stopwatch, is_worth_timing
from kgbench.harness.referee.watching import Watcher
from kgbench.harness.workers.handle import WorkerFailed
from kgbench.harness.workers.started import Worker
from kgbench.problem.model import Problem


class Referee:
    """Evaluates candidates on one device, one after the other."""

    def __init__(self, resources: Resources, defences: Defences = STRICT) -> None:
        self.resources = resources
        self.defences = defences
        self.settings = resources.settings
        self.turns = resources.turns

    def job(self, data: Mapping[str, Any]) -> Job:
        """The job that the coordinator sent. Raises ValueError."""
        return Job.from_json(data)

    def facts(self) -> dict[str, Any]:
        """What the run's record says about this device and its software."""
        return self.resources.facts()

    def properties(self) -> dict[str, Any]:
        """The GPU's, by the names of ``torch.cuda.get_device_properties``; empty without one."""
        return self.resources.properties()

    def evaluate(self, job: Job, report: Report) -> Result:
        """Judge and time one candidate. Failures of the candidate are in the result; ours raise HarnessFailed."""
        evaluation = self._begin(job)
        problem, resources = evaluation.problem, self.resources
        self.turns.was_restless()  # what an earlier candidate did is not this one's
        stopped_s, waited_s = self.turns.stopped_s, self.turns.waited_s
        worker: Worker | None = None
        try:
            kind = DeviceKind(resources.device.type)
            evaluation.verdicts |= out_of_reach(problem, resources.capability)
            evaluation.verdicts |= beyond_memory(problem, kind, resources.memory_gb)
            self._prepare_library(evaluation, report)
            for overload in problem.judged:
                if overload.name in evaluation.verdicts:
                    continue
                worker = _living(worker)
                if worker is None:
                    worker = resources.starter.start_candidate(evaluation, resources.library, report)
                verdict = Checker(resources, evaluation, overload, worker, report).check()
                evaluation.verdicts[overload.name] = verdict
            # Where all is correct, one that died since fails in what follows.
            worker = worker if evaluation.is_correct else _living(worker)
            if worker is not None and evaluation.has_calls_to_time and is_worth_timing(evaluation):
                Stopwatch(resources, evaluation, worker).time(report)
            if worker is not None and evaluation.is_correct and evaluation.attribution is not None:
                Watcher(resources, evaluation, evaluation.attribution, worker).attribute(report)
        except WorkerFailed as failure:
            evaluation.keep_log(failure)
            verdict = evaluation.said(failure)
            if job.trusted == "baseline" and isinstance(verdict.detail, Crash):
                advice = crash_advice(failure, problem.id, resources.library.targets(problem))
                verdict = replace(verdict, detail=replace(verdict.detail, advice=advice))
            missing = [overload.name for overload in problem.judged if overload.name not in evaluation.verdicts]
            evaluation.verdicts |= dict.fromkeys(missing, verdict)
        finally:
            if worker is not None:
                worker.close()
                evaluation.peak_mb = worker.handle.peak_mb
                evaluation.log = evaluation.log or worker.handle.log_tail
        # One that ends meanwhile runs for a moment, too; what failed anyway keeps its own words.
        ran = self.defences.was_restless(self.turns)
        if ran and job.trusted is None and evaluation.is_correct:
            restless = Verdict(Outcome.REJECTED, RuleBroken(Breach.RESTLESS, ran))
            evaluation.verdicts |= dict.fromkeys(evaluation.verdicts, restless)
        evaluation.charge_late_outputs()
        give_back(resources, None)
        evaluation.seconds["stopped"] = self.turns.stopped_s - stopped_s
        evaluation.seconds["waited"] = self.turns.waited_s - waited_s
        return evaluation.result(self.resources.plan)

    def library_times(self, result: Result) -> dict[str, Any]:
        """The library's times, by ``overload/case``, that later candidates may be timed beside.

        None of a candidate that is rejected: it may have slowed the library.
        """
        if result.outcome is not Outcome.PASSED:
            return {}
        return {
            library_key(case): times.to_json()
            for case in result.cases
            if case.timing is not None and (times := LibraryTimes.from_timing(case.timing)) is not None
        }

    def device_fault(self) -> str:
        """After a failure that a broken device may have caused: what is wrong with the device, or nothing."""
        device = self.resources.device
        if self.settings.probe == DEVICE_PROBE and device.type == "cpu":
            return ""
        answer: str = load_function(self.settings.probe)(self.resources.start_trusted, device)
        return answer

    def close(self) -> None:
        self.resources.library.drop()

    def _begin(self, job: Job) -> Evaluation:
        """A new evaluation."""
        problem = job.problem
        device, now = self.resources.device, self.turns.now
        evaluation = Evaluation(job, problem, self.settings, self.defences, device, now, now())
        evaluation.interpreted = device.type == "cpu" and "triton" in uses_of(job.source or "").mentioned
        if self.settings.policy != PolicyMode.OFF and job.trusted is None:
            evaluation.attribution = self.defences.attribution(problem, device.type == "cuda", job.source or "")
        return evaluation

    def _prepare_library(self, evaluation: Evaluation, report: Report) -> None:
        """Have the library ready, unless the device already lacks what a required overload needs."""
        required = [overload.name for overload in evaluation.problem.overloads if overload.required]
        if any(name in evaluation.verdicts for name in required):
            return
        report("library", "")
        problem, resources = evaluation.problem, self.resources
        with evaluation.phase("library"), room_to_begin(resources, problem):
            resources.library.prepare(problem, evaluation.module())
        evaluation.library = resources.library.record


def _living(worker: Worker | None) -> Worker | None:
    """The worker if it lives; else it is closed."""
    if worker is None or worker.handle.alive():
        return worker
    worker.close()
    return None


def out_of_reach(problem: Problem, capability: int | None) -> dict[str, Verdict]:
    """Verdicts on the overloads that need a higher compute capability than the device's."""
    found = {o.name: o.needs.lacking(capability) for o in problem.judged if o.needs is not None}
    return {name: Verdict(Outcome.SKIPPED, lacking) for name, lacking in found.items() if lacking is not None}


def beyond_memory(problem: Problem, kind: DeviceKind, memory_gb: float) -> dict[str, Verdict]:
    """Verdicts on the modules whose smallest call a device of so much memory, in 10^9 bytes, does not hold."""
    found = {o.name: o.module.lacks_memory(kind, memory_gb) for o in problem.judged if o.module is not None}
    return {name: Verdict(Outcome.SKIPPED, lacking) for name, lacking in found.items() if lacking is not None}
