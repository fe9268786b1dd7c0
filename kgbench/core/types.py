"""The nouns of a run: Mismatch, Timing, CaseResult, Generation, Result. Plain data, no torch.

What a problem is stands in ``problem/model.py``; how results become scores in ``scores``.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kgbench.core.kinds import Kind, Phase
from kgbench.core.outcomes import Outcome

_T = TypeVar("_T")


@dataclass(frozen=True)
class Mismatch:
    """The first wrong element of an output, in the words a kernel author can act on."""

    output: str
    """Name of the written argument, or ``return`` / ``return[i]``."""
    index: tuple[int, ...]
    got: str
    wanted: str
    limit: str
    """Largest error that would have been accepted at this element."""
    wrong_share: float
    """Share of wrong elements in this output, 0 to 1."""
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class Window:
    """One timed window of one side, by the referee's clock. Times in microseconds for the whole window."""

    side: str
    """``library`` or ``candidate``."""
    kind: str
    """``window``, ``single`` (one call) or ``overhead`` (no call)."""
    calls: int
    done_us: float
    """From releasing the inputs to the mark behind the last call."""
    secured_us: float
    """From releasing the inputs to having every output in the referee's own memory."""


@dataclass(frozen=True)
class Timing:
    """Library beside candidate for one bench case. Times are device time per call, cold cache."""

    library_us: float
    candidate_us: float
    ratio: float
    """library / candidate, paired by window; more than 1 means that the candidate is faster."""
    low: float
    high: float
    """Interval of the ratio, the null test's noise of this time range included."""
    scored_by: str
    """``window``; ``secured`` where outputs came later than the mark said; ``single`` where single calls are slower."""
    launch_bound: bool
    """The library's time is under 10 µs."""
    queued: bool
    """Calls were queued ahead of the release, so launch cost is not in the time."""
    call_us: float | None = None
    """Time of one candidate call with its launch cost, reported and not scored."""
    library_call_us: float | None = None
    outputs_verified: int = 0
    """How many outputs of timed calls were judged; the others were not looked at."""
    outputs_timed: int = 0
    note: str = ""
    windows: tuple[Window, ...] = ()
    library_shared: bool = False
    """The library was timed beside an earlier candidate of the problem in the same session, not beside this one."""
    against: str = "library"
    """``library``, or ``fallback`` where the library does not run here."""
    noise: float | None = None
    """Half-width of the null test's noise that the interval includes."""
    noise_source: str = ""
    """``default``, or ``measured``: by ``kgbench selftest null`` on this device, where that is more."""


@dataclass(frozen=True)
class CaseResult:
    id: str
    overload: str
    phase: Phase
    dtype: str
    variables: dict[str, Any]
    outcome: Outcome
    reason: str = ""
    mismatch: Mismatch | None = None
    seconds: float = 0.0
    timing: Timing | None = None


@dataclass(frozen=True)
class Library:
    """What the candidate was compared with, or why there was nothing to compare with."""

    name: str
    """For example ``cuBLAS 13.1.0``; empty when there was none."""
    reason: str = ""
    """Why the library did not run here; empty when it did."""
    notes: dict[str, str] = field(default_factory=dict)
    """For example ``{"math_mode": "default, TF32 off"}``."""


@dataclass(frozen=True)
class Evidence:
    """One thing that a candidate was seen to do, and whether the policy lets it."""

    kind: str
    """``operator`` of the dispatcher, ``kernel`` of the device, ``package`` whose Triton kernel ran, ``host`` function,
    ``library`` that was mapped, ``code`` in which a processor was found, ``process`` beside it, ``time`` or
    ``observer``.
    """
    name: str
    where: str = ""
    """Overload and case in which it did most."""
    count: int = 0
    share: float | None = None
    """Of the time of the calls that were watched: on the device, where there is one. None where it has none."""
    allowed: bool = True
    why: str = ""


@dataclass(frozen=True)
class Generation:
    """How a model came to write one candidate, and what that took. None where the provider did not say."""

    model_id: str = ""
    """The exact id that answered, as the provider names it."""
    input_tokens: int | None = None
    """Neither read from a cache nor written to one: the three kinds of input are disjoint."""
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    """Thinking included."""
    seconds: float = 0.0
    """From sending the request to the last byte."""
    usd: float | None = None
    """None where the price is unknown."""
    stop: str = ""
    prompt_sha256: str = ""
    batch: bool = False
    """Asked through a provider's batch interface, at its price."""
    checks: int | None = None
    """How often an agent asked the referee; None where no agent was asked."""
    confined: str = ""
    """``agent confined: `` and by what, or ``agent not confined: `` and why. Empty where no agent was asked."""


Key = tuple[str, str, int, int]
"""Problem, model, sample and round: what a result is the verdict on."""


@dataclass(frozen=True)
class Result:
    """One line of results.jsonl: everything that was found out about one candidate."""

    problem: str
    model: str
    sample: int
    outcome: Outcome
    reason: str = ""
    candidate_sha256: str = ""
    problem_sha256: str = ""
    source: str = ""
    kind: Kind = Kind.COMPUTE
    device: str = ""
    interpreted: bool = False
    """The candidate ran in Triton's interpreter, so its speed means nothing."""
    deterministic: bool | None = None
    """Calls that were made twice with the same input gave the same bits each time; None where none was compared."""
    preset: str = ""
    overloads: dict[str, str] = field(default_factory=dict)
    """Outcome of each overload, by name."""
    cases: tuple[CaseResult, ...] = ()
    library: Library | None = None
    sandbox: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """Wall time by phase: start, import, check, bench, total."""
    memory_mb: dict[str, float] = field(default_factory=dict)
    """Peak resident memory by process."""
    log_tail: str = ""
    policy: str = ""
    """``strict``, ``report`` or ``off``; empty where no candidate was judged, or one that needs no watching."""
    evidence: tuple[Evidence, ...] = ()
    """What the candidate was seen to do; docs/policy.md."""
    seed: str = ""
    """SHA-256 of the seed that its inputs came from; run.json has the seed itself once that part of the run is over."""
    round: int = 0
    """Which attempt at the sample, from 0; a later one was written knowing the verdict of the one before."""
    generation: Generation | None = None
    """None where no model was asked in this run."""
    without: tuple[str, ...] = ()
    """Layers of defence that were left out, in a test of the harness; empty in every result that means something."""

    @property
    def key(self) -> Key:
        return self.problem, self.model, self.sample, self.round

    def to_json(self) -> dict[str, Any]:
        """As JSON-ready data: enums as text, tuples as lists."""
        return dataclasses.asdict(self)


def result_from_json(data: dict[str, Any]) -> Result:
    """The inverse of ``Result.to_json``; unknown keys of a newer version are ignored."""
    cases = tuple(_case_from_json(case) for case in data.get("cases", ()))
    library = _known(Library, data["library"]) if data.get("library") else None
    generation = _known(Generation, data["generation"]) if data.get("generation") else None
    evidence = tuple(_known(Evidence, each) for each in data.get("evidence", ()))
    read: dict[str, Any] = {"outcome": Outcome(data["outcome"]), "cases": cases, "library": library}
    read |= {"generation": generation, "evidence": evidence}
    if "kind" in data:
        read["kind"] = Kind(data["kind"])
    read["without"] = tuple(data.get("without", ()))
    return _known(Result, {**data, **read})


def _case_from_json(data: dict[str, Any]) -> CaseResult:
    mismatch = data.get("mismatch")
    if mismatch:
        mismatch = _known(Mismatch, {**mismatch, "index": tuple(mismatch["index"]), "shape": tuple(mismatch["shape"])})
    timing = data.get("timing")
    if timing:
        # The first runs said nothing of queues, and had other windows, which no figure is made of.
        windows = tuple(_known(Window, each) for each in timing.get("windows", ()) if _names(Window) <= each.keys())
        timing = _known(Timing, {"queued": False, **timing, "windows": windows})
    read = {"outcome": Outcome(data["outcome"]), "phase": Phase(data["phase"]), "mismatch": mismatch, "timing": timing}
    return _known(CaseResult, {**data, **read})


def _known(cls: type[_T], data: dict[str, Any]) -> _T:
    names = _names(cls)  # type: ignore[arg-type]
    return cls(**(data if data.keys() <= names else {key: value for key, value in data.items() if key in names}))


@functools.cache
def _names(cls: type) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(cls))


def first_failure(result: Result) -> CaseResult | None:
    """The first case that is not right; None where none is, or where the candidate never got to a case."""
    return next((case for case in result.cases if case.outcome.is_failure), None)
