"""Watches calls of a correct candidate to see whose work it is."""

from __future__ import annotations

import functools
from collections import Counter
from dataclasses import replace

from kgbench.core.details.failures import PolicyBroken
from kgbench.core.details.where import Purpose
from kgbench.core.kinds import PolicyMode
from kgbench.core.outcomes import Outcome
from kgbench.core.verdicts import PASSED, Verdict
from kgbench.harness.attribution.account import tracer_works, watching
from kgbench.harness.attribution.observed import Attribution, drawn, refusal
from kgbench.harness.clock.bench import Bench
from kgbench.harness.referee.evaluation import Evaluation, JudgedCase, Report
from kgbench.harness.referee.resources import Resources
from kgbench.harness.referee.room import room_of_module
from kgbench.harness.referee.speed import Stopwatch
from kgbench.harness.workers.handle import WorkerFailed
from kgbench.harness.workers.started import Worker
from kgbench.problem.model import Overload


class Watcher:
    """Watches calls of one candidate."""

    def __init__(self, resources: Resources, evaluation: Evaluation, watch: Attribution, worker: Worker) -> None:
        self.resources = resources
        self.evaluation = evaluation
        self.watch = watch
        self.worker = worker
        self._rounds: Counter[str] = Counter()
        """How often each overload's calls were watched, by name."""

    def attribute(self, report: Report) -> None:
        """Watch calls of a correct candidate; under the strict policy, work by others is rejected."""
        evaluation, supervisor_pid = self.evaluation, self.worker.handle.supervisor_pid
        with evaluation.phase("observe"):
            for overload in evaluation.problem.judged:
                if evaluation.verdicts[overload.name].outcome is not Outcome.PASSED:
                    continue
                report("observe", overload.name)
                self._observe(overload)
                found = self.watch.refused
                if found is not None and evaluation.settings.policy == PolicyMode.STRICT:
                    evaluation.verdicts[overload.name] = Verdict(Outcome.REJECTED, PolicyBroken(found))
                if found is not None or not self.worker.handle.alive():
                    break
            self.watch.add_libraries(supervisor_pid)

    def _observe(self, overload: Overload) -> None:
        """Watch one overload; a failure while it is watched counts against it."""
        watch, supervisor_pid = self.watch, self.worker.handle.supervisor_pid
        called = [each.case for each in self.evaluation.cases_of(overload)]
        try:
            with room_of_module(self.resources, self.worker, overload, called):
                with watch.others(supervisor_pid):
                    self._watch_calls(overload)
                watch.libraries(supervisor_pid, functools.partial(self._watch_calls, overload))
        except WorkerFailed as failure:
            self.evaluation.keep_log(failure)
            watch.add(refusal(failure.reason))
        if watch.lost:
            watch.add(watch.blind(tracer_works(self.resources.start_trusted, watch.cuda)))

    def _watch_calls(self, overload: Overload) -> None:
        """Calls of one overload that decide whose work it does. Raises WorkerFailed."""
        evaluation, watch, side = self.evaluation, self.watch, self.worker.side
        choose = evaluation.seeds.chooser(f"observe/{overload.name}")
        mine = evaluation.repeatable_cases_of(overload)
        is_timed = any(judged.timing is not None for judged in mine)
        suspects = watch.suspects.get(overload.name, [])
        cases = drawn([judged.case for judged in mine], suspects, choose, bench=watch.cuda and not is_timed)
        judge = evaluation.judge(overload)
        # The same cases each time, in new values.
        purpose = f"observe {self._rounds[overload.name]}".removesuffix(" 0")
        self._rounds[overload.name] += 1
        for case in cases:
            generator = evaluation.seeds.generator(f"{purpose}/{overload.name}/{case.id}")
            limit_s = evaluation.settings.deadlines.case_s
            with watching(side, watch.cuda) as seen:
                call = judge.place(case, generator)
                with watch.sampled(side):
                    verdict = judge.check(side, case, call, generator, limit_s, False)
            watch.take(seen, case, any(spec.nbytes for spec in call.specs))
            if verdict is not PASSED:
                watch.add(refusal(replace(verdict, where=replace(call.where, purpose=Purpose.OBSERVED)).reason))
        self._watch_windows(overload, purpose)

    def _watch_windows(self, overload: Overload, purpose: str) -> None:
        """Windows of the cases that were timed. Raises WorkerFailed."""
        library = self.resources.library.worker
        timed = [each for each in self.evaluation.cases_of(overload) if each.timing is not None]
        if not timed or library is None:
            return
        stopwatch = Stopwatch(self.resources, self.evaluation, self.worker)
        bench = stopwatch.bench(overload, library, purpose)
        # Whoever was correct and timed in time has time for this, too.
        bench.deadline = self.evaluation.now() + self.evaluation.settings.deadlines.window_s * len(timed)
        try:
            for judged in timed:
                self._watch_timed(stopwatch, bench, judged)
        finally:
            bench.release()

    def _watch_timed(self, stopwatch: Stopwatch, bench: Bench, judged: JudgedCase) -> None:
        """Windows of one case; one whose times nobody can explain is timed once more, since others' work may have
        disturbed it. What is scored is what was explained. Raises WorkerFailed.
        """
        assert judged.timing is not None
        case, difference = judged.case, self.watch.timed_case(bench, self.worker.side, judged.case, judged.timing)
        if difference and self.watch.cuda and (timing := stopwatch.measure(bench, case)) is not None:
            judged.timing, judged.late = timing, bench.late
            difference = self.watch.timed_case(bench, self.worker.side, case, timing)
        if difference:
            self.watch.add_other_time(case, difference)
