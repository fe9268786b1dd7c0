"""Makes the defences of a referee without some of them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Final

from kgbench.harness.clock.bench import BenchParts
from kgbench.harness.machine.settings import RefereeSettings, default_limits
from kgbench.harness.machine.timing_lock import TimingLock
from kgbench.harness.referee.confinement import Confinement
from kgbench.harness.referee.defences import Defences
from kgbench.harness.referee.seeds import Seeds
from kgbench.harness.sandbox.plan import NOTHING, Plan
from kgbench.harness.verdict.collecting import Collector
from kgbench.harness.verdict.judge import JudgeParts
from kgbench.selftest.ablation.bench import FirstCallAgain, NoFreezer, NoOutputChecks, SelfTimedWindows, WeakCaseTiming
from kgbench.selftest.ablation.comparison import compare_as_others
from kgbench.selftest.ablation.defences import (
    ATTRIBUTION,
    CLOCK,
    CONTRACT,
    FREEZING,
    FRESH,
    PHYSICAL_BOUND,
    SANDBOX,
    SINGLES,
    VALUES,
)
from kgbench.selftest.ablation.judge import (
    BelievingCollector,
    NoContract,
    NoOtherValues,
    WeakCases,
    WeakRequests,
    nothing_is_forbidden,
)

WEAK_STUB: Final = "kgbench.selftest.ablation.worker:WeakStub"
"""Dotted path of the stub of a worker that is trusted, or whose outputs may be anything."""
NO_LIMIT: Final = 1 << 62
"""Value of each of a worker's limits without the sandbox."""


def weakened(without: frozenset[str], seeds: Seeds) -> Defences:
    """All defences except these. ``seeds``: of the job that is judged."""
    defences = Defences(
        cases=WeakCases(timed_only=VALUES in without, once=FRESH in without),
        judge=_judge(without),
        bench=_bench(without, seeds),
    )
    if without & {CONTRACT, CLOCK}:
        defences = replace(defences, stub=WEAK_STUB)
    if SANDBOX in without:
        defences = replace(defences, confine=_nowhere)
    if ATTRIBUTION in without:
        defences = replace(defences, attribution=lambda problem, cuda, source: None)
    if FREEZING in without:
        defences = replace(defences, was_restless=_never_restless)
    if PHYSICAL_BOUND in without:
        defences = replace(defences, impossible=lambda work, timing, peaks: None)
    return defences


def _judge(without: frozenset[str]) -> JudgeParts:
    lenient = CONTRACT in without
    believes = bool(without & {CONTRACT, FRESH, CLOCK})
    requests = partial(WeakRequests, poisoned=FRESH not in without, lenient=lenient)
    parts = JudgeParts(requests=requests, collector=BelievingCollector if believes else Collector)
    if lenient:
        parts = replace(parts, contract=NoContract, forbidden_change=nothing_is_forbidden)
    if VALUES in without:
        parts = replace(parts, compare=compare_as_others, other_values=NoOtherValues)
    return parts


def _bench(without: frozenset[str], seeds: Seeds) -> BenchParts:
    # A probe needs fresh inputs, a clock that is not its own, and a candidate that can be stopped.
    probes = not without & {FRESH, CLOCK, FREEZING}
    parts = BenchParts(case=partial(WeakCaseTiming, probes=probes, singles=SINGLES not in without))
    if FRESH in without:
        parts = replace(parts, layout=FirstCallAgain(seeds), checks=NoOutputChecks)
    if FREEZING in without:
        parts = replace(parts, freezer=NoFreezer)
    return replace(parts, windows=SelfTimedWindows) if CLOCK in without else parts


def _never_restless(turns: TimingLock) -> str:
    # Asked all the same, or it would be held against the next candidate.
    turns.was_restless()
    return ""


def _nowhere(settings: RefereeSettings, plan: Plan) -> Confinement:
    """No sandbox, no folder hidden, no limits."""
    return Confinement(NOTHING, (), dict.fromkeys({**default_limits(), **settings.limits}, NO_LIMIT))
