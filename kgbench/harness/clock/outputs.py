"""The referee's own copy of a window's outputs, and the choice of them that is judged."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

import torch

from kgbench.core.details.where import Purpose, Where
from kgbench.core.verdicts import PASSED, Verdict
from kgbench.harness.clock.window_inputs import WindowInputs
from kgbench.harness.machine import trace
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.wire.device import GPU
from kgbench.harness.workers.started import WorkerSide
from kgbench.problem.cases import Case

VERIFY_S: Final = 0.01
"""Average seconds of judging outputs per window; where one output takes longer, only some windows have one judged."""
KEPT_BYTES: Final = {"cuda": 1 << 30, "cpu": 128 << 20}
"""Bytes of a case's timed calls that may wait to be judged, per kind of device; beyond it they are chosen by lot."""
KEPT_LEAST: Final = 4
"""Calls that may wait to be judged even if they are larger than KEPT_BYTES."""


class BenchFailed(Exception):
    """A timed output was wrong: the candidate's failure, found during timing."""

    def __init__(self, verdict: Verdict) -> None:
        super().__init__(verdict.reason)
        self.verdict = verdict


class SecuredOutputs:
    """Copies of the last window's calls, in memory that no worker can write."""

    def __init__(self, device: torch.device, choose: random.Random) -> None:
        self.device = device
        self.choose = choose
        self.stride = 0
        self.order: list[int] = []
        """Which call lies where."""
        self.memory = torch.empty(0, dtype=torch.uint8, device=device)

    def make_room(self, nbytes: int) -> None:
        """Allocate memory for a window of that many bytes."""
        if self.memory.numel() < nbytes:
            self.memory = torch.empty(nbytes, dtype=torch.uint8, device=self.device)

    def secure(self, side: WorkerSide, calls: int, stride: int) -> None:
        """Copy all calls, in random order so that no call is known to have more time than another."""
        self.order, self.stride = self.choose.sample(range(calls), calls), stride
        if calls:
            assert side.buffer is not None
            rows = side.buffer.bytes_at(0, calls * stride).view(torch.int64).view(calls, -1)
            order = torch.tensor(self.order, device=self.device)
            torch.index_select(rows, 0, order, out=self.memory[: calls * stride].view(torch.int64).view(calls, -1))
        if self.device.type == "cuda":
            GPU.wait()

    @property
    def rows(self) -> torch.Tensor:
        """uint8 (calls, stride): the last window's calls in the order in which they lie."""
        return self.memory[: len(self.order) * self.stride].view(len(self.order), -1)

    @property
    def places(self) -> torch.Tensor:
        """int64 (calls,): which row each call is."""
        places = [0] * len(self.order)
        for place, call in enumerate(self.order):
            places[call] = place
        return torch.tensor(places, device=self.memory.device)

    def call(self, i: int) -> torch.Tensor:
        """A copy of the outputs of call number ``i``."""
        place = self.order.index(i)
        return self.memory[place * self.stride : (place + 1) * self.stride].clone()

    def release(self) -> None:
        """Give the memory back."""
        self.memory = torch.empty(0, dtype=torch.uint8, device=self.device)


class TakesSamples(Protocol):
    """What compares both sides' calls, window by window."""

    def note(self, side: str, inputs: WindowInputs, outputs: dict[str, SecuredOutputs]) -> None: ...


@dataclass
class KeptCalls:
    """Timed calls of one case with their secured bytes, to be judged after the turn."""

    case: Case
    waiting: list[tuple[PlacedCall, torch.Tensor]] = field(default_factory=list)
    offered: int = 0
    """How many calls were chosen to be kept; more than there is room for are kept by lot."""
    verified: int = 0
    """How many were judged."""

    def fail_unless_passed(self, verdict: Verdict, purpose: Purpose = Purpose.WINDOW) -> None:
        """Raises BenchFailed where something was wrong."""
        if verdict is not PASSED:
            raise BenchFailed(replace(verdict, where=Where(purpose, self.case.overload, self.case.id)))


class OutputChecks:
    """Judges a random choice of an overload's timed calls, as many as there is time for."""

    def __init__(self, judge: OverloadJudge, outputs: SecuredOutputs, choose: random.Random) -> None:
        self.judge = judge
        self.outputs = outputs
        self.choose = choose
        self.oracle_s = 0.0
        """Seconds that judging the last call took."""

    def choose_kept(self, kept: KeptCalls, inputs: WindowInputs, calls: int) -> None:
        """Keep a random choice of a window's calls, made after they were secured, to be judged after the turn."""
        affordable = VERIFY_S / self.oracle_s if self.oracle_s else 1.0
        count = int(affordable) + (self.choose.random() < affordable % 1)
        if kept.verified + len(kept.waiting) == 0:
            count = max(count, 1)
        room = max(KEPT_LEAST, KEPT_BYTES[self.judge.device.type] // inputs.layout.stride)
        for i in self.choose.sample(range(calls), min(calls, count)):
            kept.offered += 1
            if len(kept.waiting) == room and (place := self.choose.randrange(kept.offered)) < room:
                kept.waiting[place] = self.secured_call(inputs, i)
            elif len(kept.waiting) < room:
                kept.waiting.append(self.secured_call(inputs, i))

    @trace.span("compare samples")
    def compare(
        self, compared: TakesSamples, side: str, inputs: WindowInputs, outputs: dict[str, SecuredOutputs]
    ) -> None:
        """Have a window of one side compared with the other's."""
        compared.note(side, inputs, outputs)

    def secured_call(self, inputs: WindowInputs, i: int) -> tuple[PlacedCall, torch.Tensor]:
        """Call number ``i`` of the last window with its secured bytes."""
        return inputs.kept(i), self.outputs.call(i)

    def judged(self, call: PlacedCall, secured: torch.Tensor) -> Verdict:
        """The verdict on one call; its duration decides how many are chosen."""
        started = time.perf_counter()
        verdict = self.judge.judge(call, secured)
        self.oracle_s = time.perf_counter() - started
        return verdict
