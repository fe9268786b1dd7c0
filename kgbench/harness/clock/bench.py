"""Times a candidate beside the library: alternating windows, each released, clocked and secured by the referee.

A window is n calls on n input sets that nobody has seen before (``window.py``). What a window costs beside its calls is
measured with windows of one least kernel. Nothing that a worker says enters a time.

A worker that raises the mark early gains nothing: outputs are secured in random order right after it while the
worker is stopped, a random choice of them is judged, and if securing takes longer than for the library, by more than
noise, that time is added (``securing.py``). Single-call windows catch a candidate that does the work of many calls in
one.

What is timed happens in the referee's turn, while every other worker of the device stands still; warming up and
judging the outputs that were kept happen outside it, so that others get on.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, NoReturn

import torch

from kgbench.core.details.where import Where
from kgbench.core.kinds import DeviceKind
from kgbench.core.types import Timing
from kgbench.harness.clock.budget import Budget
from kgbench.harness.clock.case import CaseTiming, Measured
from kgbench.harness.clock.estimate import estimate
from kgbench.harness.clock.library_times import LibraryTimes
from kgbench.harness.clock.outputs import KeptCalls, OutputChecks, SecuredOutputs
from kgbench.harness.clock.quiet import Freezer, QuietDevice
from kgbench.harness.clock.securing import Late, late_of
from kgbench.harness.clock.statistics import LAUNCH_BOUND_US, interval, null_noise
from kgbench.harness.clock.window import Probing, Sampling, WindowRunner
from kgbench.harness.clock.window_inputs import WindowLayout
from kgbench.harness.machine import trace
from kgbench.harness.machine.cores import shared_core
from kgbench.harness.machine.timing_lock import TimingLock
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.wire.device import GPU
from kgbench.harness.workers.handle import WorkerFailed
from kgbench.harness.workers.started import Clock, WorkerSide
from kgbench.problem.cases import Case


@dataclass(frozen=True)
class BenchParts:
    """The classes that a bench is made of."""

    layout: Callable[[OverloadJudge, Case, torch.Generator], WindowLayout] = WindowLayout.of
    freezer: Callable[[QuietDevice], Freezer] = Freezer
    windows: type[WindowRunner] = WindowRunner
    checks: type[OutputChecks] = OutputChecks
    case: Callable[..., CaseTiming] = CaseTiming


STRICT_BENCH: Final = BenchParts()
"""The parts that every candidate is timed with."""


class Bench:
    """Times cases of one overload, library beside candidate."""

    def __init__(
        self,
        judge: OverloadJudge,
        sides: dict[str, WorkerSide],
        clocks: dict[str, Clock],
        budget: Budget,
        generator: torch.Generator,
        choose: random.Random,
        references: frozenset[str],
        deadline: float,
        turns: TimingLock,
        noise: Mapping[str, float],
        parts: BenchParts = STRICT_BENCH,
    ) -> None:
        self.judge = judge
        self.parts = parts
        self.budget = budget
        self.generator = generator
        self.references = references
        """Sides that run the reference as their entry and need its hints."""
        self.deadline = deadline
        """Seconds on the referee's clock (``TimingLock.now``) at which the whole evaluation is over."""
        self.noise = noise
        """Noise of a ratio that a null test on this device showed, by range of time as in NULL_NOISE."""
        self.device = QuietDevice(judge.device, turns, choose)
        outputs = {name: SecuredOutputs(judge.device, choose) for name in sides}
        limit_s = budget.window_deadline_s
        freezer = parts.freezer(self.device)
        self.windows = parts.windows(sides, clocks, self.device, outputs, limit_s, freezer)
        self.checks = parts.checks(judge, outputs["candidate"], choose)
        self.probing: Probing | None = None
        """Asks whose code runs while cases are timed; None where nobody does."""
        self.first: PlacedCall | None = None
        """A call of the case that was timed last."""
        self.late: Late | None = None
        """When the outputs of that case's calls were there."""

    def time_case(self, case: Case, against: str, known: LibraryTimes | None = None) -> Timing:
        """Raises WorkerFailed where a worker fails, BenchFailed where a timed output is wrong, Unmeasurable where there
        is no time, DeviceBusy where there is none now.

        With ``known``, only the candidate is timed, in windows of as many calls.
        """
        layout = self.parts.layout(self.judge, case, self.generator)
        run = self._case(case, layout)
        run.queued, run.known, run.noise, run.probing = self.windows.queues, known, self.noise, self.probing
        # What lies in the host's memory travels before any window's values are drawn.
        on_host = any(chunk.is_on_host for chunk in layout.first.inputs.chunks.values())
        if not on_host:
            run.others = self.judge.other_values.of(case)
        with trace.span("warm up", case=case.id):
            run.direct_calls()
        try:
            with self._on_one_core(), self.device.turns.turn():
                self.windows.await_others()
                self.windows.timing = True
                try:
                    measured = run.measure()
                finally:
                    self.windows.timing = False
                    self.windows.settle_library()
        finally:
            # Others need this memory in their turns. The driver takes 8 to 40 ms, in which all would stand still.
            with trace.span("give memory back"):
                self.windows.release_outputs()
                self._give_back_memory()
        self.windows.settle("candidate")
        run.verify_kept()
        run.verify_suspect()
        run.kept.fail_unless_passed(self.judge.conclude())
        return self._timing(run, measured, against)

    def run_once(self, case: Case, calls: int, sampler: Sampling | None = None) -> None:
        """A window of the candidate's that nobody times and whose outputs are judged. Raises like ``time_case``.

        ``sampler`` is at work while the calls are.
        """
        run = self._case(case, self.parts.layout(self.judge, case, self.generator))
        self.windows.sampler = sampler
        try:
            run.run_once(calls)
        finally:
            self.windows.sampler = None
        self.windows.settle("candidate")
        run.kept.fail_unless_passed(self.judge.conclude())

    def end_who_stays_busy(self, where: Where) -> NoReturn:
        """After DeviceBusy: end the candidate to see whether it was its doing. Raises WorkerFailed, HarnessFailed."""
        self.device.end_who_stays_busy(self.windows.candidate, where)

    def release(self) -> None:
        """Give back the memory that only timing needs."""
        self.device.release()
        self.windows.release_outputs()
        self.windows.settle_library()
        library = self.windows.sides["library"]
        if library.handle.exit is None:
            with contextlib.suppress(WorkerFailed):
                library.unmap()
        self._give_back_memory()

    def _give_back_memory(self) -> None:
        """To the device, for other processes."""
        if self.device.cuda:
            GPU.release_cached()

    def _on_one_core(self) -> AbstractContextManager[None]:
        """Both sides' workers, where the device's turns have cores of their own."""
        supervisors = (side.handle.supervisor_pid for side in self.windows.sides.values())
        return shared_core(supervisors, self.device.turns.cores)

    def _case(self, case: Case, layout: WindowLayout) -> CaseTiming:
        return self.parts.case(
            self.windows,
            self.checks,
            layout,
            KeptCalls(case),
            self.budget,
            self.generator,
            self.references,
            self.deadline,
        )

    def _timing(self, run: CaseTiming, measured: Measured, against: str) -> Timing:
        self.first = run.layout.first
        self.late = late_of(measured.pairs, self.windows.overhead_us)
        found = estimate(measured.pairs, measured.singles, self.windows.overhead_us)
        noise, noise_source = null_noise(DeviceKind(self.judge.device.type), found.library_us, run.queued, self.noise)
        ratio, low, high = interval(found.log_ratios, noise)
        return Timing(
            library_us=found.library_us,
            candidate_us=found.candidate_us,
            ratio=ratio,
            low=low,
            high=high,
            scored_by=found.scored_by,
            launch_bound=found.library_us < LAUNCH_BOUND_US,
            queued=run.queued,
            call_us=measured.call_us["candidate"],
            library_call_us=measured.call_us["library"],
            outputs_verified=run.kept.verified,
            outputs_timed=run.timed,
            outputs_compared=run.compared.compared,
            note=found.note,
            windows=tuple(window for window in run.ran if window.kind != "warm"),
            against=against,
            library_shared=run.known is not None,
            noise=noise,
            noise_source=noise_source,
            empty_us=self.windows.overhead_us,
        )
