"""Loads modules in workers: a candidate's, or the problem's own in the library's place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from kgbench.core.details.failures import Breach, RuleBroken, StateUnfit
from kgbench.core.details.where import Purpose, Where
from kgbench.core.outcomes import Outcome
from kgbench.core.text import told
from kgbench.core.types import WEAK, Library
from kgbench.harness.machine.settings import Deadlines
from kgbench.harness.verdict.modules.handing import hand_over
from kgbench.harness.verdict.modules.trusted import TrustedModule
from kgbench.harness.wire.requests import FullPrecision, LoadCandidate
from kgbench.harness.workers.handle import WorkerFailed
from kgbench.harness.workers.started import Worker
from kgbench.problem.modules import TRUSTED_ENTRY

_MOST_DIFFERENCES: Final = 8
"""Most differences of a state that a verdict names."""


@dataclass(frozen=True)
class RunModule:
    """A problem's module, and how it runs where candidates are timed beside it."""

    module: TrustedModule
    entry: str
    """The overload that it is the entry of."""
    weights: str
    """The secret of its parameters."""
    compiled: bool

    passes_wrong: str = ""
    """Which wrong answers its outputs cannot tell from correct ones, as one sentence; empty where none are known."""

    def library(self) -> Library:
        """What a result says of it."""
        how = "torch.compile" if self.compiled else "eager"
        notes = {"math_mode": "TF32 off", **({WEAK: self.passes_wrong} if self.passes_wrong else {})}
        return Library(f"PyTorch {torch.__version__} {how}", "", notes)


def load_trusted(worker: Worker, wanted: RunModule, deadlines: Deadlines) -> None:
    """Have a trusted worker run the problem's own module. Raises WorkerFailed."""
    where, limit_s = Where(Purpose.LIBRARY), deadlines.import_s
    worker.handle.request(FullPrecision(), limit_s, where)
    loading = LoadCandidate(wanted.module.source.text, {wanted.entry: [TRUSTED_ENTRY]}, watched=False, classes=True)
    worker.handle.request(loading, limit_s, where)
    hand_over(worker.side, wanted.module, wanted.entry, limit_s, where, compiled=wanted.compiled)


def make_candidate(worker: Worker, wanted: RunModule, deadlines: Deadlines) -> None:
    """Have a candidate's worker make its module with the problem's state. Raises WorkerFailed."""
    where, limit_s = Where(Purpose.IMPORT), deadlines.import_s + deadlines.compile_s
    reply = hand_over(worker.side, wanted.module, wanted.entry, limit_s, where)
    unfit = reply.get("unfit")
    if isinstance(unfit, list) and unfit:
        differences = tuple(told(str(each)) for each in unfit[:_MOST_DIFFERENCES])
        raise WorkerFailed(worker.handle, Outcome.COMPILE_ERROR, StateUnfit(differences), where)
    if reply.get("fitted") not in ("name", "order"):
        raise WorkerFailed(worker.handle, Outcome.REJECTED, RuleBroken(Breach.MALFORMED), where)
