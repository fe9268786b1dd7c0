"""Parts of a weaker bench, as other benchmarks have it: parts of ``BenchParts``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from kgbench.core.details.where import Where
from kgbench.core.types import Window
from kgbench.harness.clock.case import CaseTiming
from kgbench.harness.clock.estimate import Pair
from kgbench.harness.clock.outputs import KeptCalls, OutputChecks, SecuredOutputs, TakesSamples
from kgbench.harness.clock.quiet import Freezer
from kgbench.harness.clock.window import OverheadWindow, TimedWindow, WindowRunner
from kgbench.harness.clock.window_inputs import WindowInputs, WindowLayout
from kgbench.harness.referee.first_calls import first_call
from kgbench.harness.referee.seeds import Seeds
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.workers.handle import WorkerHandle
from kgbench.problem.cases import Case


class RepeatedInputs(WindowLayout):
    """Every call of a window gets the values of the first."""

    def __init__(self, judge: OverloadJudge, first: PlacedCall) -> None:
        super().__init__(judge, first)
        for chunk in first.inputs.chunks.values():
            self.template[chunk.offset : chunk.offset + chunk.image.numel()] = chunk.image

    def draw(self, calls: int, generator: torch.Generator) -> WindowInputs:
        return WindowInputs(self, self.template.expand(calls, self.stride).clone())


class FirstCallAgain:
    """Lays out a case's windows in the values that the candidate was checked with."""

    def __init__(self, seeds: Seeds) -> None:
        self.seeds = seeds

    def __call__(self, judge: OverloadJudge, case: Case, generator: torch.Generator) -> WindowLayout:
        return RepeatedInputs(judge, first_call(self.seeds, judge, case))


class NoOutputChecks(OutputChecks):
    """No timed output is judged."""

    def choose_kept(self, kept: KeptCalls, inputs: WindowInputs, calls: int) -> None:
        pass

    def compare(
        self, compared: TakesSamples, side: str, inputs: WindowInputs, outputs: dict[str, SecuredOutputs]
    ) -> None:
        pass


class NoFreezer(Freezer):
    """Candidates, and what they left on the device, run on at all times."""

    def freeze(self, worker: WorkerHandle) -> float:
        return 0.0

    def await_quiet(self, deadline_s: float = 0.0) -> None:
        pass


class SelfTimedWindows(WindowRunner):
    """Windows timed by the candidate's worker itself; launches are always in those times."""

    @property
    def queues(self) -> bool:
        return False

    def run(
        self, plan: OverheadWindow | TimedWindow, where: Where, meanwhile: Callable[[], None] = lambda: None
    ) -> Window:
        window = super().run(plan, where, meanwhile)
        if plan.side != "candidate" or plan.inputs is None:
            return window
        told_us = self._told_us() + self.overhead_us
        return replace(window, done_us=told_us, secured_us=told_us)

    def _told_us(self) -> float:
        handle, (epoch, where) = self.candidate, self.owed.pop("candidate")
        if handle.is_frozen:
            handle.thaw()
        told = handle.reply(epoch, self.limit_s, where).get("elapsed_us")
        return float(told) if isinstance(told, (int, float)) else 0.0


class WeakCaseTiming(CaseTiming):
    """Windows without probes among them, or without single calls after them."""

    def __init__(self, *collaborators: Any, probes: bool, singles: bool) -> None:
        super().__init__(*collaborators)
        self.has_probes = probes
        self.has_singles = singles

    def probe(self, calls: int, pairs: list[Pair]) -> None:
        if self.has_probes:
            super().probe(calls, pairs)

    def singles(self, pairs: list[Pair]) -> tuple[float, float] | None:
        return super().singles(pairs) if self.has_singles else None
