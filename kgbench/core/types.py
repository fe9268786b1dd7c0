"""The data of a run: Timing, CaseResult, Generation, Result. No torch.

Details of a verdict are in ``details``, problems in ``problem/model.py``; ``scores`` turns results into scores.
"""

from __future__ import annotations

import dataclasses
import functools
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from kgbench.core.details.failures import Evidence
from kgbench.core.details.outputs import Alias
from kgbench.core.details.sentences import sentence
from kgbench.core.details.union import Detail, detail_from_json, detail_to_json, where_from_json
from kgbench.core.details.values import Mismatch, RootMeanSquare
from kgbench.core.details.where import Where
from kgbench.core.kinds import Kind, Phase, PolicyMode
from kgbench.core.outcomes import Outcome

_T = TypeVar("_T")
_EARLIER_TOGETHER: Final = "root mean square error "
"""Start of the text that earlier versions stored as the value of an output whose root mean square error is too large.
"""


@dataclass(frozen=True)
class Window:
    """One timed window of one side, by the referee's clock. Times in microseconds for the whole window."""

    side: str
    """``library`` or ``candidate``."""
    kind: str
    """``window``, ``single`` (one call) or ``overhead`` (no call)."""
    calls: int
    done_us: float
    """Microseconds from releasing the inputs to the mark after the last call."""
    secured_us: float
    """Microseconds from releasing the inputs to having every output in the referee's own memory."""


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
    """Number of outputs of timed calls that were judged; the others were not."""
    outputs_timed: int = 0
    outputs_compared: int = 0
    """How many of these were compared with the library's own, so that one which was left out would be judged."""
    note: str = ""
    windows: tuple[Window, ...] = ()
    library_shared: bool = False
    """The library was timed beside an earlier candidate of the problem in the same session, not beside this one."""
    against: str = "library"
    """``library``, or ``fallback`` where the library does not run here."""
    noise: float | None = None
    """Half-width of the null test's noise that the interval includes."""
    empty_us: float | None = None
    """Time in µs of a window of one minimal kernel on this device, which was subtracted from each window. None in runs
    of earlier versions whose windows were not stored.
    """
    noise_source: str = ""
    """``default``, or ``measured`` by ``kgbench selftest null`` on this device; the larger one counts."""


@dataclass(frozen=True)
class CaseResult:
    id: str
    overload: str
    phase: Phase
    dtype: str
    variables: dict[str, Any]
    outcome: Outcome
    reason: str = ""
    """The sentence for people, made of ``detail`` and ``where`` unless it is given; nothing reads it back."""
    detail: Detail | None = None
    """The detail; None where it is correct, and in runs of earlier versions."""
    seconds: float = 0.0
    timing: Timing | None = None
    where: Where | None = None

    def __post_init__(self) -> None:
        if self.detail is not None and not self.reason:
            object.__setattr__(self, "reason", sentence(self.detail, self.where))

    def to_json(self) -> dict[str, Any]:
        """JSON-ready data; the detail has the name of its type."""
        return {**dataclasses.asdict(self), "detail": detail_to_json(self.detail)}

    @property
    def mismatch(self) -> Mismatch | None:
        """The first wrong element, where there is one."""
        detail = self.detail.value if isinstance(self.detail, Alias) else self.detail
        return detail if isinstance(detail, Mismatch) else None


WEAK: Final = "weak"
"""Key of a library's notes: which wrong answers a problem's outputs cannot tell from correct ones."""


@dataclass(frozen=True)
class Library:
    """What the candidate was compared with, or why there was nothing to compare with."""

    name: str
    """Library and version, for example ``cuBLAS 13.1.0``; empty when there was none."""
    reason: str = ""
    """Why the library did not run here; empty when it did."""
    notes: dict[str, str] = field(default_factory=dict)
    """Settings of the library that bear on its speed, for example ``{"math_mode": "default, TF32 off"}``."""
    failed: bool = False
    """True where it runs here but failed beside this candidate, which therefore has no speed."""


@dataclass(frozen=True)
class Generation:
    """How a model wrote one candidate, and what that took. None where the provider did not say."""

    model_id: str = ""
    """The exact id that answered, as the provider names it."""
    input_tokens: int | None = None
    """Input tokens that were neither read from a cache nor written to one: the three kinds of input are disjoint."""
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    """Output tokens, thinking included."""
    seconds: float = 0.0
    """Seconds from sending the request to the last byte of the reply."""
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
    not_confined: str = ""
    """Why an agent could see what it must not; empty where it could not, and where no agent was asked."""


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
    """The sentence for people, made of ``detail`` and ``where`` unless it is given; nothing reads it back."""
    detail: Detail | None = None
    """What happened in the first required overload that is not correct; None in runs of earlier versions."""
    where: Where | None = None
    candidate_sha256: str = ""
    problem_sha256: str = ""
    source: str = ""
    kind: Kind = Kind.COMPUTE
    device: str = ""
    """Kind of the device."""
    device_name: str = ""
    """The device's model, in a run on several machines; otherwise run.json has it."""
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
    policy: PolicyMode | None = None
    """None where no candidate was judged, or one that needs no watching."""
    evidence: tuple[Evidence, ...] = ()
    """What the candidate was seen to do; docs/policy.md."""
    seed: str = ""
    """SHA-256 of the seed that its inputs came from; run.json has the seed itself once that part of the run is over."""
    round: int = 0
    """Which attempt at the sample, from 0; a later one was written knowing the verdict of the one before."""
    generation: Generation | None = None
    """None where no model was asked in this run."""
    told: str = ""
    """The verdict in words that its author may read; empty unless a service judged."""
    adapted: str = ""
    """The installed package, with its version, whose kernel was judged: ``liger_kernel 0.8.5``."""
    without: tuple[str, ...] = ()
    """Defences that were disabled, in a self-test; empty in every real result."""

    def __post_init__(self) -> None:
        if self.detail is not None and not self.reason:
            object.__setattr__(self, "reason", sentence(self.detail, self.where))

    @property
    def key(self) -> Key:
        return self.problem, self.model, self.sample, self.round

    def to_json(self) -> dict[str, Any]:
        """JSON-ready data: enums as text, tuples as lists, details with the name of their type."""
        data = dataclasses.asdict(self)
        data |= {"detail": detail_to_json(self.detail), "cases": [case.to_json() for case in self.cases]}
        return data | {"policy": self.policy or ""}


def result_from_json(data: dict[str, Any]) -> Result:
    """The inverse of ``Result.to_json``; unknown keys of a newer version are ignored."""
    cases = tuple(_case_from_json(case) for case in data.get("cases", ()))
    library = _known(Library, data["library"]) if data.get("library") else None
    generation = _generation_from_json(data["generation"]) if data.get("generation") else None
    evidence = tuple(_known(Evidence, each) for each in data.get("evidence", ()))
    read: dict[str, Any] = {"outcome": Outcome(data["outcome"]), "cases": cases, "library": library}
    read |= {"generation": generation, "evidence": evidence}
    read["policy"] = PolicyMode(data["policy"]) if data.get("policy") else None
    if "kind" in data:
        read["kind"] = Kind(data["kind"])
    read["without"] = tuple(data.get("without", ()))
    read |= {"detail": detail_from_json(data.get("detail")), "where": where_from_json(data.get("where"))}
    return _known(Result, {**data, **read})


def _generation_from_json(data: dict[str, Any]) -> Generation:
    """Older runs say only in their sentence that an agent was not confined."""
    _, older, reason = str(data.get("confined", "")).partition("agent not confined: ")
    return _known(Generation, {"not_confined": reason if older else "", **data})


def _case_from_json(data: dict[str, Any]) -> CaseResult:
    detail = detail_from_json(data["detail"]) if "detail" in data else _earlier_detail(data.get("mismatch"))
    where = where_from_json(data.get("where"))
    timing = data.get("timing")
    if timing:
        # The first runs said nothing of queues, and had other windows, which no figure is made of.
        windows = tuple(_known(Window, each) for each in timing.get("windows", ()) if _names(Window) <= each.keys())
        empty = min((window.done_us for window in windows if window.kind == "overhead"), default=None)
        timing = _known(Timing, {"queued": False, "empty_us": empty, **timing, "windows": windows})
    read: dict[str, Any] = {"outcome": Outcome(data["outcome"]), "phase": Phase(data["phase"]), "timing": timing}
    read |= {"detail": detail, "where": where}
    return _known(CaseResult, {**data, **read})


def _earlier_detail(mismatch: dict[str, Any] | None) -> Detail | None:
    """The detail of a run of an earlier version: the first wrong element, or a text in its place for an output that is
    too far off as a whole.
    """
    if not mismatch:
        return None
    wrong = _known(Mismatch, {**mismatch, "index": tuple(mismatch["index"]), "shape": tuple(mismatch["shape"])})
    if not wrong.got.startswith(_EARLIER_TOGETHER):
        return wrong
    error = float(wrong.got.removeprefix(_EARLIER_TOGETHER))
    return RootMeanSquare(wrong.output, error, float(wrong.limit), wrong.shape, wrong.dtype)


def _known(cls: type[_T], data: dict[str, Any]) -> _T:
    names = _names(cls)  # type: ignore[arg-type]
    return cls(**(data if data.keys() <= names else {key: value for key, value in data.items() if key in names}))


@functools.cache
def _names(cls: type) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(cls))


def first_failure(result: Result) -> CaseResult | None:
    """The first case that is not correct; None where none is, or where the candidate never got to a case."""
    return next((case for case in result.cases if case.outcome.is_failure), None)
