"""How fast a candidate is beside the library, once it is correct."""

from __future__ import annotations

import time
from typing import Final

from kgbench.core.details.absence import Fault
from kgbench.core.details.place import place
from kgbench.core.details.where import Purpose, Where
from kgbench.core.kinds import Kind, Phase
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Timing
from kgbench.core.verdicts import PASSED, Verdict
from kgbench.harness.clock.bench import Bench
from kgbench.harness.clock.budget import Budget
from kgbench.harness.clock.estimate import Unmeasurable
from kgbench.harness.clock.library_times import LibraryTimes
from kgbench.harness.clock.outputs import BenchFailed
from kgbench.harness.clock.quiet import DeviceBusy
from kgbench.harness.clock.work_estimate import work_of
from kgbench.harness.machine.timing_lock import DISTURBED, Disturbed
from kgbench.harness.referee.evaluation import Evaluation, JudgedCase, Report, library_key
from kgbench.harness.referee.resources import Resources
from kgbench.harness.referee.room import is_costly, room_of_module, tried_again
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.workers.handle import HarnessFailed, Unmeasured, WorkerFailed
from kgbench.harness.workers.started import Worker
from kgbench.problem.cases import Case
from kgbench.problem.model import Overload

BUSY_ATTEMPTS: Final = 3
"""Attempts at timing a case on a device that other work keeps busy."""
BUSY_PAUSE_S: Final = 0.5
"""Seconds between two of these attempts."""
TIMED_KINDS: Final = (Kind.COMPUTE, Kind.CREATION, Kind.RANDOM)
"""Kinds of problems whose operators do work that takes a time."""


class Stopwatch:
    """Times the bench cases of one candidate."""

    def __init__(self, resources: Resources, evaluation: Evaluation, worker: Worker) -> None:
        self.resources = resources
        self.evaluation = evaluation
        self.worker = worker

    def time(self, report: Report) -> None:
        """Time every bench case of every required overload; a failure replaces the verdict of the check, unless a call
        was wrong there.
        """
        evaluation = self.evaluation
        library = self.resources.library.worker
        if library is None:
            return
        with evaluation.phase("bench"):
            for overload in evaluation.problem.overloads:
                if overload.required:
                    verdict = self._overload_verdict(overload, library, report)
                    if verdict is not PASSED:
                        checked = evaluation.verdicts[overload.name]
                        if checked is PASSED or evaluation.is_not_offered(checked):
                            evaluation.verdicts[overload.name] = verdict
                        return

    def bench(self, overload: Overload, library: Worker, purpose: str) -> Bench:
        """A bench for cases of one overload. ``purpose`` names its draws."""
        evaluation, resources = self.evaluation, self.resources
        sides = {"library": library, "candidate": self.worker}
        references = frozenset({"candidate"} if evaluation.job.as_reference else ())
        return Bench(
            evaluation.judge(overload),
            {name: side.side for name, side in sides.items()},
            {name: side.clock for name, side in sides.items()},
            self._budget(),
            evaluation.seeds.generator(f"{purpose}/{overload.name}"),
            evaluation.seeds.chooser(f"{purpose} choice/{overload.name}"),
            references,
            evaluation.started + evaluation.deadlines.whole_s,
            resources.turns,
            evaluation.settings.noise,
            evaluation.defences.bench,
        )

    def _budget(self) -> Budget:
        window_s = self.evaluation.settings.deadlines.window_s
        if self.resources.device.type == "cuda":
            return Budget(3000.0, 0.4, int(min(1.0, self.resources.memory_gb / 16) * 1e9), window_s)
        return Budget(10_000.0, 3.0, 128 << 20, window_s)

    def _overload_verdict(self, overload: Overload, library: Worker, report: Report) -> Verdict:
        timed = [each.case for each in self.evaluation.cases_of(overload) if each.case.phase is Phase.BENCH]
        try:
            with room_of_module(self.resources, self.worker, overload, timed):
                return self._time_overload(overload, library, report)
        except WorkerFailed as failure:
            if failure.side is not self.worker.handle:
                raise HarnessFailed(f"the library failed between two cases: {failure.reason}") from None
            self.evaluation.keep_log(failure)
            return failure.verdict

    def _time_overload(self, overload: Overload, library: Worker, report: Report) -> Verdict:
        evaluation = self.evaluation
        bench = self.bench(overload, library, "bench")
        if evaluation.attribution is not None:
            bench.probing = evaluation.attribution.probing(self.worker.side)
        if not evaluation.job.library_times:
            self._warm_library(bench.judge, library)
        try:
            for judged in evaluation.cases_of(overload):
                if judged.case.phase != Phase.BENCH or judged.verdict is not PASSED:
                    continue
                report("bench", f"{overload.name} {judged.case.id}".strip())
                self._time_case(bench, judged)
                if judged.verdict is not PASSED or self.resources.library.worker is None:
                    return judged.verdict
        finally:
            bench.release()
        return PASSED

    def _warm_library(self, judge: OverloadJudge, library: Worker) -> None:
        """Run the library on the cases that the candidate ran, so that both enter timing in the same state.

        What a process ran before decides where its code and workspaces lie. The library's outputs are judged on the
        way.
        """
        evaluation, overload = self.evaluation, judge.overload
        if overload.name in library.side.warm:
            return
        library.side.warm.add(overload.name)
        deadlines = evaluation.settings.deadlines
        allowed_s = deadlines.case_s + deadlines.compile_s
        for case in self._cases_to_warm(overload):
            generator = evaluation.seeds.generator(f"library/{overload.name}/{case.id}")
            try:
                call = self.resources.first_calls.of(evaluation, judge, case)
                verdict = judge.check(library.side, case, call, generator, allowed_s, False)
            except WorkerFailed:
                return
            if verdict is not PASSED and evaluation.library is not None:
                evaluation.library.notes.setdefault("not correct by our reference", f"{case.id}: {verdict.reason}")

    def _cases_to_warm(self, overload: Overload) -> list[Case]:
        """What the candidate ran; of a module whose every call is costly the timed ones."""
        cases = [judged.case for judged in self.evaluation.repeatable_cases_of(overload)]
        if all(is_costly(overload, case) for case in cases):
            return [case for case in cases if case.phase is Phase.BENCH]
        return cases

    # --- one case ---

    def _time_case(self, bench: Bench, judged: JudgedCase) -> None:
        """Enter the case's times, and what was decided about it while it was timed."""
        evaluation, case = self.evaluation, judged.case
        begun = evaluation.now()
        known = evaluation.job.library_times.get(library_key(case))
        known_times = None if known is None else LibraryTimes.from_json(known)
        judged.verdict, judged.timing = self._measured(bench, case, known_times)
        judged.late = bench.late if judged.timing is not None else None
        judged.seconds += evaluation.now() - begun

    def _measured(self, bench: Bench, case: Case, known: LibraryTimes | None) -> tuple[Verdict, Timing | None]:
        try:
            timing = self.measure(bench, case, known)
            return self._believed(bench, case, timing), timing
        except BenchFailed as failure:
            return failure.verdict, None
        except WorkerFailed as failure:
            if failure.side is self.worker.handle:
                self.evaluation.keep_log(failure)
                return failure.verdict, None
            # The library's fault is not the candidate's: it stays right, without a speed.
            self.evaluation.library = self.resources.library.lose(failure)
            return PASSED, None

    def measure(self, bench: Bench, case: Case, known: LibraryTimes | None = None) -> Timing | None:
        """The case's times, at the second attempt if need be; None, with a line in the log, where there are none.

        Raises WorkerFailed, and BenchFailed where a timed output is wrong.
        """
        for attempt in (known, None):
            try:
                return self._measure_in_quiet(bench, case, attempt)
            except Unmeasurable as error:
                reason = str(error)
        self.evaluation.log += f"\nkgbench: case {case.id} has no time: {reason}"
        return None

    def _measure_in_quiet(self, bench: Bench, case: Case, known: LibraryTimes | None) -> Timing:
        """The times, measured with the device quiet in the library's turns and all other candidates stopped."""
        disturbed = False
        for _ in range(BUSY_ATTEMPTS):
            try:
                return self._timed_with_room(bench, case, known)
            except (DeviceBusy, Disturbed) as error:
                disturbed = isinstance(error, Disturbed)
            # What another candidate's kernel still does can end only while that candidate is not stopped.
            time.sleep(BUSY_PAUSE_S)
        where = Where(Purpose.TIMING, case.overload, case.id)
        if disturbed:
            raise Unmeasured(Fault.DISTURBED, f"{place(where)}{BUSY_ATTEMPTS} times {DISTURBED}")
        bench.end_who_stays_busy(where)

    def _timed_with_room(self, bench: Bench, case: Case, known: LibraryTimes | None) -> Timing:
        """The times, measured again where others held the memory that this takes."""
        against = self.resources.library.against
        return tried_again(self.resources.turns, lambda _: bench.time_case(case, against, known), bench.release)

    def _believed(self, bench: Bench, case: Case, timing: Timing | None) -> Verdict:
        """PASSED, or a rejection where no such device can do the work in that time; on a CPU, whose caches hold too
        much, always PASSED.
        """
        reached = self.resources.peaks
        on_cpu = self.resources.device.type == "cpu"
        if timing is None or on_cpu or reached is None:
            return PASSED
        work = work_of(bench.judge.overload, case, bench.first)
        bound = None if work is None else self.evaluation.defences.impossible(work, timing, reached)
        where = Where(Purpose.WINDOW, case.overload, case.id)
        return PASSED if bound is None else Verdict(Outcome.REJECTED, bound, where)


def is_worth_timing(evaluation: Evaluation) -> bool:
    wanted = evaluation.settings.timing and evaluation.job.timing
    return wanted and not evaluation.interpreted and evaluation.problem.kind in TIMED_KINDS
