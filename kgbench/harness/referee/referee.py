"""The judge: owns seeds, inputs, oracle, clock and verdict; runs no candidate code. Several per device.

Asks the fork server for workers, and judges them through memory that it shares with them and owns. Referees of one
device work side by side and take turns at timing. ``refereeprocess.py`` is their process.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import random
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import torch

from kgbench.baselines.registry import load_function
from kgbench.core.types import CaseResult, Library, Outcome, Result, Timing
from kgbench.harness.attribution.account import tracer_works, watching
from kgbench.harness.attribution.observed import Attribution, drawn, refusal
from kgbench.harness.clock.bench import Bench
from kgbench.harness.clock.case import Budget
from kgbench.harness.clock.estimate import Unmeasurable
from kgbench.harness.clock.library import LibrarySide
from kgbench.harness.clock.library_times import LibraryTimes
from kgbench.harness.clock.outputs import BenchFailed
from kgbench.harness.clock.peaks import peaks
from kgbench.harness.clock.physical_bound import impossible
from kgbench.harness.clock.quiet import DeviceBusy
from kgbench.harness.clock.work_estimate import work_of
from kgbench.harness.machine.languages import deadlines_for, lacking, machine_of, uses_of
from kgbench.harness.machine.settings import DEVICE_PROBE, Job, RefereeSettings
from kgbench.harness.machine.timing_lock import Turns
from kgbench.harness.mutants.applicability import why_not
from kgbench.harness.sandbox.plan import NOTHING, Plan
from kgbench.harness.verdict import defences
from kgbench.harness.verdict.defences import FLOOR
from kgbench.harness.verdict.judge import OverloadJudge, warm_up
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.verdict.random.judge import judge_for
from kgbench.harness.verdict.reference import reference_spec
from kgbench.harness.verdict.repeat import can_repeat, check_again
from kgbench.harness.verdict.verdicts import PASSED, Verdict
from kgbench.harness.wire.buffers import ControlPage
from kgbench.harness.wire.protocol import Channel
from kgbench.harness.workers.handle import HarnessFailed, WorkerFailed, WorkerHandle, default_limits, worker_spec
from kgbench.harness.workers.started import Clock, Side, Worker
from kgbench.policy.evidence import words
from kgbench.problem.cases import Case, choose_preset, expand_cases, in_other_values
from kgbench.problem.entry_names import entry_names
from kgbench.problem.model import Overload, Problem
from kgbench.problem.registry import load_problem
from kgbench.problem.suites import Suite, with_suite

AGAIN_CALLS: Final = 12
"""Cases repeated per overload after all were right: this many, and up to as many more, nobody knows how many."""
OTHER_VALUES: Final = 3
"""Value sets of check cases in which a timed case is repeated, at most."""
SUSPICIOUS: Final = (Outcome.RUNTIME_ERROR, Outcome.CRASHED, Outcome.TIMEOUT)
ENDS_A_SUITE: Final = (Outcome.CRASHED, Outcome.TIMEOUT, Outcome.REJECTED, Outcome.SKIPPED, Outcome.HARNESS_ERROR)
"""What leaves nobody to ask, or would cost its deadline again in every call."""
BUSY_ATTEMPTS: Final = 3
BUSY_PAUSE_S: Final = 0.5
CACHED_CALL_BYTES: Final = 8 << 20
HOARD_BYTES: Final = 1 << 30
"""Device memory that a referee may keep for its next case."""
Report = Callable[[str, str], None]


@dataclass
class Evaluation:
    """What is known about one candidate so far."""

    job: Job
    problem: Problem
    now: Callable[[], float]
    """Seconds without those in which this referee stood still."""
    started: float = 0.0
    cases: list[CaseResult] = field(default_factory=list)
    seconds: dict[str, float] = field(default_factory=dict)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    library: Library | None = None
    log: str = ""
    peak_mb: float = 0.0
    interpreted: bool = False
    deterministic: bool | None = None
    """Every call that was made twice with the same input gave the same bits; None where none was."""
    preset: str = ""
    attribution: Attribution | None = None
    """None where nobody asks whose work it is."""

    def note_bits(self, same: bool | None) -> None:
        """Of one call that was made twice; None where nothing can be said of it."""
        if same is not None:
            self.deterministic = same and self.deterministic is not False

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the block's wall time to a phase."""
        begun = self.now()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self.now() - begun


class Referee:
    """Evaluates candidates on one device, one after the other."""

    def __init__(self, server: Channel, settings: RefereeSettings, plan: Plan, turns: Turns) -> None:
        self.server = server
        self.settings = settings
        self.plan = plan
        self.turns = turns
        self.device = torch.device("cuda", 0) if settings.device_kind == "cuda" else torch.device("cpu")
        self.limits = {**default_limits(), **settings.limits}
        warm_up()
        if settings.device_kind == "cuda":
            torch.zeros(1, device=self.device)
        self.memory_gb: float | None = None
        self.capability: int | None = None
        """Compute capability, 90 for 9.0; None on a CPU."""
        self.library = LibrarySide(lambda: self._start("library"), settings.device_kind, settings.deadlines.import_s)
        self.calls: dict[tuple[str, str], PlacedCall] = {}
        """First calls of the cases of the problem that was judged last, with what is right for them."""
        self.kept_for = ("", False)
        self.without: frozenset[str] = frozenset()
        self.peaks = settings.peaks
        if self.peaks is None and settings.number == 0 and settings.timing:
            self.peaks = peaks(self.device)
        if settings.device_kind == "cpu":
            self.memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
        else:
            self.memory_gb = torch.cuda.get_device_properties(0).total_memory / 1e9
            major, minor = torch.cuda.get_device_capability(0)
            self.capability = 10 * major + minor

    def facts(self) -> dict[str, Any]:
        """What the run's record says about this device and its software."""
        name = _cpu_name()
        if self.device.type == "cuda":
            name = torch.cuda.get_device_name(0)
        return {
            "kind": self.device.type,
            "name": name,
            "memory_gb": self.memory_gb,
            "versions": {"torch": torch.__version__, "cuda": torch.version.cuda},
            "peaks": self.peaks,
        }

    def evaluate(self, job: Job, report: Report) -> Result:
        """Judge and time one candidate. Failures of the candidate are in the result; ours raise HarnessFailed."""
        problem = _problem_of(job)
        self.without = self._left_out(job)
        evaluation = Evaluation(job, problem, self.turns.now, self.turns.now())
        waited_s = self.turns.waited_s
        evaluation.interpreted = self._interpreted(job)
        if self.settings.policy != "off" and job.trusted is None and defences.ATTRIBUTION not in self.without:
            evaluation.attribution = Attribution(problem, self.device.type == "cuda")
        worker: Worker | None = None
        try:
            evaluation.verdicts |= self._out_of_reach(problem)
            if not any(overload.required and overload.name in evaluation.verdicts for overload in problem.overloads):
                report("library", "")
                with evaluation.phase("library"):
                    self.library.prepare(problem)
                evaluation.library = self.library.record
            for overload in problem.judged:
                if overload.name in evaluation.verdicts:
                    continue
                if worker is not None and not worker.handle.alive():
                    worker.close()
                    worker = None
                if worker is None:
                    worker = self._start_candidate(evaluation, report)
                verdict = self._check_overload(evaluation, overload, worker, report)
                evaluation.verdicts[overload.name] = verdict
            if self._right(evaluation) and self._worth_timing(evaluation) and worker is not None:
                self._time(evaluation, worker, report)
            if self._right(evaluation) and worker is not None:
                self._attribute(evaluation, worker, report)
        except WorkerFailed as failure:
            self._note(evaluation, failure)
            verdict = Verdict(failure.outcome, failure.reason)
            missing = [overload.name for overload in problem.judged if overload.name not in evaluation.verdicts]
            evaluation.verdicts |= dict.fromkeys(missing, verdict)
        finally:
            if worker is not None:
                worker.close()
                evaluation.peak_mb = worker.handle.peak_mb
                evaluation.log = evaluation.log or worker.handle.log_tail
        evaluation.seconds["waited"] = self.turns.waited_s - waited_s
        return self._result(evaluation)

    def _left_out(self, job: Job) -> frozenset[str]:
        """Layers of defence that this job does without. Raises HarnessFailed where the session is not for such."""
        if unknown := set(job.without) - set(defences.LAYERS):
            raise HarnessFailed(f"there are no such layers of defence: {sorted(unknown)}")
        if job.without and not self.settings.ablation:
            raise HarnessFailed("a job leaves out layers of defence, and the session is not for tests of the harness")
        return frozenset(job.without)

    def _judge(self, overload: Overload) -> OverloadJudge:
        """The overload's judge, without what the job leaves out."""
        judge = judge_for(overload, self.device)
        judge.without = self.without
        return judge

    def _out_of_reach(self, problem: Problem) -> dict[str, Verdict]:
        """Verdicts on the overloads that ask for more than this device has."""
        found = {o.name: o.needs.lacking(self.capability) for o in problem.judged if o.needs is not None}
        return {name: Verdict(Outcome.SKIPPED, words) for name, words in found.items() if words}

    def sickness(self, result: Result) -> str:
        """After a failure that a broken device may have caused: what is wrong with the device, or nothing."""
        if result.outcome not in SUSPICIOUS:
            return ""
        if self.settings.probe == DEVICE_PROBE and self.device.type == "cpu":
            return ""
        answer: str = load_function(self.settings.probe)(lambda: self._start("library"), self.device)
        return answer

    def close(self) -> None:
        self.library.drop()

    # --- correctness ---

    def _start_candidate(self, evaluation: Evaluation, report: Report) -> Worker:
        """A fresh worker with the candidate loaded. Raises WorkerFailed."""
        job, problem = evaluation.job, evaluation.problem
        report("start", "")
        role = {None: "candidate", "baseline": "library"}.get(job.trusted, "reference")
        with evaluation.phase("start"):
            worker = self._start(role)
        if evaluation.attribution is not None:
            evaluation.attribution.before_import(worker.handle.keeper_pid)
        report("import", "")
        try:
            with evaluation.phase("import"):
                self._load_candidate(worker, job, problem, watched=evaluation.attribution is not None)
        except BaseException:
            worker.close()
            evaluation.peak_mb = worker.handle.peak_mb
            evaluation.log = worker.handle.log_tail
            raise
        return worker

    def _load_candidate(self, worker: Worker, job: Job, problem: Problem, watched: bool) -> None:
        request: dict[str, Any] = {"op": "load"}
        if job.trusted == "baseline":
            request["targets"] = self.library.targets(problem)
            if not all(request["targets"].values()):
                words = f"the problem names no library for device {self.device.type}"
                raise WorkerFailed(worker.handle, Outcome.SKIPPED, words)
        elif job.as_reference:
            request["mutant"] = job.mutant
            request["reference"] = {
                o.name: {"reference": reference_spec(o), "parameters": [p.name for p in o.signature.parameters]}
                for o in problem.judged
            }
        else:
            request |= {"source": job.source, "watched": watched}
            if words := lacking(str(job.source), machine_of(self.device.type, torch.version.cuda)):
                raise WorkerFailed(worker.handle, Outcome.SKIPPED, words)
            request["entries"] = entry_names(problem, str(job.source))
        deadline_s = deadlines_for(job.source, self.settings.deadlines).import_s
        reply = worker.handle.request(request, deadline_s, "import")
        if job.trusted is not None:
            if "unavailable" in reply:
                raise WorkerFailed(worker.handle, Outcome.SKIPPED, str(reply["unavailable"]))
            return
        missing, defines = reply.get("missing"), reply.get("defines")
        if not isinstance(missing, list) or not isinstance(defines, list):
            raise WorkerFailed(worker.handle, Outcome.REJECTED, "import: malformed reply")
        wanted = next((o.signature.name for o in problem.overloads if o.required and o.signature.name in missing), None)
        if wanted is not None:
            words = (
                f"the file defines no function {wanted}; functions it defines: {', '.join(map(str, defines)) or 'none'}"
            )
            raise WorkerFailed(worker.handle, Outcome.COMPILE_ERROR, words)

    def _check_overload(self, evaluation: Evaluation, overload: Overload, worker: Worker, report: Report) -> Verdict:
        """Every check, fuzz and bench case of one overload, until one fails; of a suite every call."""
        judge = self._judge(overload)
        if words := why_not(evaluation.job.mutant, overload):
            return Verdict(Outcome.SKIPPED, words)
        cases = expand_cases(overload, self.device.type, self.memory_gb, self._problem_seed(evaluation.job, "cases"))
        if defences.VALUES in self.without:
            cases = [case for case in cases if case.phase == "bench"]
        evaluation.preset = evaluation.preset or choose_preset(overload, self.device.type, self.memory_gb)
        failed: Verdict | None = None
        for number, case in enumerate(cases, 1):
            label = f"{overload.name} {case.id}".strip()
            report("check", f"{label} ({number}/{len(cases)})")
            begun = self.turns.now()
            with evaluation.phase("check"):
                verdict = self._check_case(evaluation, judge, case, worker, "")
            evaluation.cases.append(_case_result(case, verdict, self.turns.now() - begun))
            if verdict is not PASSED:
                failed = failed or verdict
                if not evaluation.job.suite or verdict.outcome in ENDS_A_SUITE or not worker.handle.alive():
                    return failed
        return failed or self._check_again(evaluation, judge, cases, worker, report)

    def _check_again(
        self, evaluation: Evaluation, judge: OverloadJudge, cases: list[Case], worker: Worker, report: Report
    ) -> Verdict:
        """Repeat cases that were right, with new values and in secret number and order.

        Without it a kernel that answers from memory (same shape, same address) or only works for its first calls would
        pass where nothing is timed.
        """
        if defences.FRESH in self.without:
            return PASSED
        choose = random.Random(self._seed(evaluation.job, f"again/{judge.overload.name}"))
        bench = [case for case in cases if case.phase == "bench"]
        again = bench + self._in_other_values(judge.overload, bench, choose)
        again += [choose.choice(cases) for _ in range(AGAIN_CALLS + choose.randrange(AGAIN_CALLS))]
        choose.shuffle(again)
        twice = {0, 1, *[index for index, case in enumerate(again) if case.phase == "bench"][:1]}
        for number, case in enumerate(again, 1):
            report("check", f"{judge.overload.name} again ({number}/{len(again)})".strip())
            with evaluation.phase("check"):
                verdict = self._check_case(evaluation, judge, case, worker, f"again/{number}", number - 1 in twice)
            if verdict is not PASSED and not (
                # Their values are for smaller sizes: more of a sum may overflow on its way.
                case not in cases and self._library_fails_too(evaluation, judge, case, f"again/{number}", verdict)
            ):
                index = next(
                    i for i, r in enumerate(evaluation.cases) if (r.id, r.overload) == (case.id, case.overload)
                )
                evaluation.cases[index] = _case_result(case, verdict, evaluation.cases[index].seconds)
                return replace(verdict, reason=f"right at first, then wrong: {verdict.reason}")
        return PASSED

    def _library_fails_too(
        self, evaluation: Evaluation, judge: OverloadJudge, case: Case, purpose: str, verdict: Verdict
    ) -> bool:
        """Whether the library gets the very same call wrong as well, or nobody can be asked."""
        if verdict.outcome is not Outcome.WRONG_VALUE:
            return False
        library = self.library.worker
        if library is None:
            return True
        limit_s = self.settings.deadlines.case_s + self.settings.deadlines.compile_s
        generator = self._generator(evaluation.job, f"{judge.overload.name}/{case.id}/{purpose}")
        call = judge.place(case, generator)
        try:
            return judge.check(library.side, case, call, generator, limit_s, False) is not PASSED
        except WorkerFailed as failure:
            evaluation.library = self.library.lose(failure)
            return True

    def _in_other_values(self, overload: Overload, bench: list[Case], choose: random.Random) -> list[Case]:
        """Timed shapes with values that only small ones are known to have; with the same where there are no others.

        Else a kernel that tells timed shapes from the rest could be careless there.
        """
        found: list[Case] = []
        for case in bench:
            others = [] if defences.VALUES in self.without else in_other_values(overload, case)
            found += choose.sample(others, min(len(others), OTHER_VALUES)) or [case]
        return found

    def _check_case(
        self,
        evaluation: Evaluation,
        judge: OverloadJudge,
        case: Case,
        worker: Worker,
        purpose: str,
        twice: bool = False,
    ) -> Verdict:
        deadlines = deadlines_for(evaluation.job.source, self.settings.deadlines)
        compile_class = f"{judge.overload.name}/{case.dtype}"
        first = compile_class not in worker.side.warm
        # A library may come without code for this GPU, and a case may be the first that has the driver translate some.
        translates = first or evaluation.job.trusted == "baseline"
        allowed = deadlines.case_s + (deadlines.compile_s if translates else 0.0)
        remaining = deadlines.whole_s - (self.turns.now() - evaluation.started)
        if remaining <= 0:
            return Verdict(Outcome.TIMEOUT, f"case {case.id}: whole evaluation took over {deadlines.whole_s:g} s")
        generator = self._generator(evaluation.job, f"{judge.overload.name}/{case.id}/{purpose}")
        call = judge.place(case, generator) if purpose else self._first_call(evaluation, judge, case)
        try:
            limit_s = min(allowed, remaining)
            twice = twice and not evaluation.job.as_reference and can_repeat(judge, call)
            call = replace(call, remembers=True) if twice else call
            watch = None if purpose else evaluation.attribution
            with contextlib.nullcontext() if watch is None else watch.first_call(worker.side, case):
                verdict = judge.check(worker.side, case, call, generator, limit_s, evaluation.job.as_reference)
            if verdict is PASSED and twice:
                verdict, same = check_again(judge, worker.side, case, call, generator, limit_s)
                evaluation.note_bits(same)
        except WorkerFailed as failure:
            self._note(evaluation, failure)
            if self.device.type == "cuda" and failure.outcome is Outcome.RUNTIME_ERROR:
                # A device fault leaves the worker's CUDA context unusable.
                worker.handle.kill()
            return Verdict(failure.outcome, failure.reason)
        worker.side.warm.add(compile_class)
        if self.device.type == "cuda" and torch.cuda.memory_reserved() > HOARD_BYTES:
            # Others on this device need it, too.
            torch.cuda.empty_cache()
        if verdict is not PASSED and verdict.mismatch is not None:
            verdict = replace(verdict, reason=f"case {case.id} {_words(case)}: {verdict.reason}")
        elif verdict is not PASSED:
            verdict = replace(verdict, reason=f"case {case.id}: {verdict.reason}")
        return verdict

    def _first_call(self, evaluation: Evaluation, judge: OverloadJudge, case: Case) -> PlacedCall:
        """The first call of a case: the same for all candidates of a problem, so that its oracle runs once.

        Candidates cannot tell each other what they saw. Repeated and timed calls are each candidate's own.
        """
        job, kept_for = evaluation.job, (evaluation.problem.sha256, evaluation.job.practice)
        if self.kept_for != kept_for:
            self.kept_for, self.calls = kept_for, {}
        key = (judge.overload.name, case.id)
        call = self.calls.get(key)
        if call is None:
            call = judge.place(case, self._seeded(self._problem_seed(job, f"{judge.overload.name}/{case.id}")))
            if call.end <= CACHED_CALL_BYTES:
                call = replace(call, remembers=True)
                self.calls[key] = call
        return call

    # --- whose work it is ---

    def _attribute(self, evaluation: Evaluation, worker: Worker, report: Report) -> None:
        """Watch calls of what was found right; under a strict policy, what others did is rejected."""
        watch = evaluation.attribution
        if watch is None:
            return
        with evaluation.phase("observe"):
            for overload in evaluation.problem.judged:
                if evaluation.verdicts[overload.name].outcome is not Outcome.PASSED:
                    continue
                report("observe", overload.name)
                try:
                    with watch.others(worker.handle.keeper_pid):
                        self._watch(evaluation, watch, overload, worker)
                    again = functools.partial(self._watch, evaluation, watch, overload, worker)
                    watch.libraries(worker.handle.keeper_pid, again)
                except WorkerFailed as failure:
                    self._note(evaluation, failure)
                    watch.add(refusal(failure.reason))
                if watch.lost:
                    watch.add(watch.blind(tracer_works(lambda: self._start("library"), watch.cuda)))
                found = watch.refused
                if found is not None and self.settings.policy == "strict":
                    evaluation.verdicts[overload.name] = Verdict(Outcome.REJECTED, f"policy: {words(found)}")
                if found is not None or not worker.handle.alive():
                    break
            watch.add_libraries(worker.handle.keeper_pid)

    def _watch(self, evaluation: Evaluation, watch: Attribution, overload: Overload, worker: Worker) -> None:
        """Calls of one overload that decide whose work it does. Raises WorkerFailed."""
        choose = random.Random(self._seed(evaluation.job, f"observe/{overload.name}"))
        mine = [result for result in evaluation.cases if result.overload == overload.name]
        timed = [result for result in mine if result.timing is not None]
        plain, suspects = [_case_of(result) for result in mine], watch.suspects.get(overload.name, [])
        cases = drawn(plain, suspects, choose, bench=watch.cuda and not timed)
        judge = self._judge(overload)
        for case in cases:
            generator = self._generator(evaluation.job, f"observe/{overload.name}/{case.id}")
            limit_s = self.settings.deadlines.case_s
            with watching(worker.side, watch.cuda) as seen:
                call = judge.place(case, generator)
                verdict = judge.check(worker.side, case, call, generator, limit_s, False)
            watch.take(seen, case, any(promise.nbytes for promise in call.promises))
            if verdict is not PASSED:
                watch.add(refusal(f"case {case.id}: {verdict.reason}"))
        if timed and self.library.worker is not None:
            bench = self._bench(evaluation, overload, self.library.worker, worker, "observe")
            # Whoever was right and timed in time has time for this, too.
            bench.deadline = self.turns.now() + self.settings.deadlines.window_s * len(timed)
            try:
                for result in timed:
                    assert result.timing is not None
                    watch.timed_case(bench, worker.side, _case_of(result), result.timing)
            finally:
                bench.release()

    # --- speed ---

    def _worth_timing(self, evaluation: Evaluation) -> bool:
        kind = evaluation.problem.kind
        wanted = self.settings.timing and evaluation.job.timing
        return wanted and not evaluation.interpreted and kind in ("compute", "creation", "random")

    def _time(self, evaluation: Evaluation, worker: Worker, report: Report) -> None:
        """Time every bench case of every required overload; the results replace those of the check."""
        library = self.library.worker
        if library is None:
            return
        with evaluation.phase("bench"):
            for overload in evaluation.problem.overloads:
                if overload.required:
                    try:
                        verdict = self._time_overload(evaluation, overload, library, worker, report)
                    except WorkerFailed as failure:
                        if failure.side is not worker.handle:
                            raise HarnessFailed(f"the library failed between two cases: {failure.reason}") from None
                        self._note(evaluation, failure)
                        verdict = Verdict(failure.outcome, failure.reason)
                    if verdict is not PASSED:
                        evaluation.verdicts[overload.name] = verdict
                        return

    def _time_overload(
        self, evaluation: Evaluation, overload: Overload, library: Worker, worker: Worker, report: Report
    ) -> Verdict:
        bench = self._bench(evaluation, overload, library, worker, "bench")
        judge = bench.judge
        if not evaluation.job.library_times:
            self._warm_library(evaluation, judge, library)
        try:
            for index, result in enumerate(evaluation.cases):
                if result.overload != overload.name or result.phase != "bench":
                    continue
                report("bench", f"{overload.name} {result.id}".strip())
                case = Case(result.id, result.overload, result.phase, result.dtype, result.variables)
                begun = self.turns.now()
                known = evaluation.job.library_times.get(library_key(result))
                known_times = None if known is None else LibraryTimes.from_json(known)
                if defences.FRESH in self.without:
                    bench.given = self._first_call(evaluation, judge, case)
                verdict, timing = self._time_case(evaluation, bench, case, worker, known_times)
                seconds = result.seconds + self.turns.now() - begun
                evaluation.cases[index] = replace(_case_result(case, verdict, seconds), timing=timing)
                if verdict is not PASSED or self.library.worker is None:
                    return verdict
        finally:
            bench.release()
        return PASSED

    def _bench(
        self, evaluation: Evaluation, overload: Overload, library: Worker, worker: Worker, purpose: str
    ) -> Bench:
        judge = self._judge(overload)
        sides = {"library": library, "candidate": worker}
        references = frozenset({"candidate"} if evaluation.job.as_reference else ())
        return Bench(
            judge,
            {name: side.side for name, side in sides.items()},
            {name: side.clock for name, side in sides.items()},
            self._budget(),
            self._generator(evaluation.job, f"{purpose}/{overload.name}"),
            random.Random(self._seed(evaluation.job, f"{purpose} choice/{overload.name}")),
            references,
            evaluation.started + deadlines_for(evaluation.job.source, self.settings.deadlines).whole_s,
            self.turns,
            self.settings.noise,
        )

    def _warm_library(self, evaluation: Evaluation, judge: OverloadJudge, library: Worker) -> None:
        """Have the library do the cases that the candidate did, so that both enter the timing alike.

        What a process ran before decides where its code and workspaces lie. On the way the library is judged, too.
        """
        if judge.overload.name in library.side.warm:
            return
        library.side.warm.add(judge.overload.name)
        allowed = self.settings.deadlines.case_s + self.settings.deadlines.compile_s
        for result in evaluation.cases:
            if result.overload == judge.overload.name:
                case = Case(result.id, result.overload, result.phase, result.dtype, result.variables)
                generator = self._generator(evaluation.job, f"library/{judge.overload.name}/{case.id}")
                try:
                    call = self._first_call(evaluation, judge, case)
                    verdict = judge.check(library.side, case, call, generator, allowed, False)
                except WorkerFailed:
                    return
                if verdict is not PASSED and evaluation.library is not None:
                    evaluation.library.notes.setdefault("not right by our reference", f"{case.id}: {verdict.reason}")

    def _time_case(
        self, evaluation: Evaluation, bench: Bench, case: Case, worker: Worker, known: LibraryTimes | None
    ) -> tuple[Verdict, Timing | None]:
        try:
            timing = self._measure(evaluation, bench, case, known)
            return self._believed(evaluation.job, bench, case, timing), timing
        except BenchFailed as failure:
            return failure.verdict, None
        except WorkerFailed as failure:
            if failure.side is worker.handle:
                self._note(evaluation, failure)
                return Verdict(failure.outcome, failure.reason), None
            # The library's fault is not the candidate's: it stays right, without a speed.
            evaluation.library = self.library.lose(failure)
            return PASSED, None

    def _measure(self, evaluation: Evaluation, bench: Bench, case: Case, known: LibraryTimes | None) -> Timing | None:
        """The case's times, at the second attempt if need be; None, with a line in the log, where there are none."""
        for attempt in (known, None):
            try:
                return self._measure_in_quiet(bench, case, attempt)
            except Unmeasurable as error:
                reason = str(error)
        evaluation.log += f"\nkgbench: case {case.id} has no time: {reason}"
        return None

    def _measure_in_quiet(self, bench: Bench, case: Case, known: LibraryTimes | None) -> Timing:
        """Times of a device that was quiet whenever the library's turn came."""
        for _ in range(BUSY_ATTEMPTS):
            with contextlib.suppress(DeviceBusy):
                return bench.time_case(case, self.library.against, known)
            # What another candidate's kernel still does can end only while that candidate is not stopped.
            time.sleep(BUSY_PAUSE_S)
        bench.end_who_stays_busy(f"case {case.id}, timing")

    def _believed(self, job: Job, bench: Bench, case: Case, timing: Timing | None) -> Verdict:
        """Whether a device like this one can do the work in that time; a CPU's caches hold too much to say."""
        if timing is None or self.device.type == "cpu" or self.peaks is None or FLOOR in job.without:
            return PASSED
        work = work_of(bench.judge.overload, case, bench.first)
        words = "" if work is None else impossible(work, timing, self.peaks)
        return Verdict(Outcome.REJECTED, f"case {case.id}: faster than is possible: {words}") if words else PASSED

    def _budget(self) -> Budget:
        window_s = self.settings.deadlines.window_s
        if self.device.type == "cuda":
            assert self.memory_gb is not None
            return Budget(3000.0, 0.4, int(min(2.0, self.memory_gb / 16) * 1e9), window_s)
        return Budget(10_000.0, 3.0, 128 << 20, window_s)

    # --- shared ---

    def _start(self, role: str) -> Worker:
        """A worker that has its device up. Raises WorkerFailed, HarnessFailed."""
        plan, hidden, limits = self.plan, list(self.settings.hidden), self.limits
        if defences.SANDBOX in self.without and role == "candidate":
            plan, hidden, limits = NOTHING, [], dict.fromkeys(self.limits, 1 << 62)
        spec = worker_spec(role, self.device.type, self.settings.device_uuid, plan.to_json(), hidden, limits)
        handle = WorkerHandle(self.server, spec, self.turns)
        page = ControlPage.create()
        try:
            handle.request({"op": "hello"}, 60.0, "start", (page.fd,))
        except WorkerFailed as failure:
            handle.kill()
            # No candidate code has run yet, so this is ours.
            raise HarnessFailed(f"worker did not start: {failure.reason}\n{failure.log}") from None
        finally:
            # Both sides have mapped it.
            os.close(page.fd)
        return Worker(handle, Side(handle, self.device.type, 0), Clock(page))

    def _interpreted(self, job: Job) -> bool:
        return self.device.type == "cpu" and job.source is not None and "triton" in uses_of(job.source).mentioned

    def _right(self, evaluation: Evaluation) -> bool:
        required = [overload.name for overload in evaluation.problem.overloads if overload.required]
        return all(evaluation.verdicts[name].outcome is Outcome.PASSED for name in required)

    def _note(self, evaluation: Evaluation, failure: WorkerFailed) -> None:
        if failure.log:
            evaluation.log = failure.log

    def _seed(self, job: Job, purpose: str) -> str:
        again = f"/round {job.round}" if job.round else ""
        text = f"{self._secret(job)}/{job.problem_id}/{job.model}/{job.sample}{again}/{purpose}"
        return hashlib.sha256(text.encode()).hexdigest()

    def _problem_seed(self, job: Job, purpose: str) -> str:
        """Of what is alike for all candidates of a problem."""
        return hashlib.sha256(f"{self._secret(job)}/{job.problem_id}/{purpose}".encode()).hexdigest()

    def _secret(self, job: Job) -> str:
        """What is drawn for practice says nothing about what is drawn for a verdict."""
        return f"{self.settings.seed}/practice" if job.practice else self.settings.seed

    def _generator(self, job: Job, purpose: str) -> torch.Generator:
        return self._seeded(self._seed(job, purpose))

    def _seeded(self, seed: str) -> torch.Generator:
        return torch.Generator(device=self.device).manual_seed(int(seed[:15], 16))

    def _result(self, evaluation: Evaluation) -> Result:
        problem, job = evaluation.problem, evaluation.job
        failed = next(
            (
                verdict
                for overload in problem.overloads
                if overload.required and (verdict := evaluation.verdicts[overload.name]) is not PASSED
            ),
            PASSED,
        )
        evaluation.seconds["total"] = self.turns.now() - evaluation.started
        source = job.source or ""
        return Result(
            problem=problem.id,
            model=job.model,
            sample=job.sample,
            outcome=failed.outcome,
            reason=f"WITHOUT {', '.join(job.without)}: {failed.reason}" if job.without else failed.reason,
            without=tuple(job.without),
            candidate_sha256=hashlib.sha256(source.encode()).hexdigest() if source else "",
            problem_sha256=problem.sha256,
            source=problem.source,
            kind=problem.kind,
            device=self.device.type,
            interpreted=evaluation.interpreted,
            deterministic=evaluation.deterministic,
            preset=evaluation.preset,
            overloads={name: str(verdict.outcome) for name, verdict in evaluation.verdicts.items()},
            cases=tuple(evaluation.cases),
            library=evaluation.library,
            sandbox=self.plan.states(),
            seconds={name: round(value, 4) for name, value in evaluation.seconds.items()},
            memory_mb={
                "worker": evaluation.peak_mb,
                "referee": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3, 1),
            },
            policy=self.settings.policy if job.trusted is None else "",
            evidence=() if evaluation.attribution is None else evaluation.attribution.kept(),
            log_tail=evaluation.log if failed is not PASSED else evaluation.log[-2000:],
        )


def library_key(case: CaseResult) -> str:
    """Under which a bench case's library times are kept."""
    return f"{case.overload}/{case.id}"


def _case_of(result: CaseResult) -> Case:
    return Case(result.id, result.overload, result.phase, result.dtype, result.variables)


def _case_result(case: Case, verdict: Verdict, seconds: float) -> CaseResult:
    return CaseResult(
        id=case.id,
        overload=case.overload,
        phase=case.phase,
        dtype=case.dtype,
        variables=case.variables,
        outcome=verdict.outcome,
        reason=verdict.reason,
        mismatch=verdict.mismatch,
        seconds=round(seconds, 4),
    )


def _problem_of(job: Job) -> Problem:
    """The job's problem, with the cases that it is judged by."""
    problem = load_problem(Path(job.problem_path))
    if not job.suite:
        return problem
    return with_suite(problem, Suite.from_json(json.loads(Path(job.suite).read_text(encoding="utf-8"))))


def _cpu_name() -> str:
    """The processor's model name and the number of cores this process may use."""
    cores = len(os.sched_getaffinity(0))
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        return f"{model}, {cores} cores"
    return f"CPU, {cores} cores"


def _words(case: Case) -> str:
    shown = {name: value for name, value in case.variables.items() if isinstance(value, (int, float, str, bool))}
    return "(" + ", ".join(f"{name}={value}" for name, value in list(shown.items())[:12]) + ")"
