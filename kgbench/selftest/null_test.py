"""The null test: each library against itself, which leaves the harness's own noise. No torch.

``kgbench selftest null`` runs it; the noise of a device is stored for later sessions (``core/device_facts.py``), whose
intervals are at least as wide.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from kgbench.core.device_facts import NOISE, device_key, keep, noise_of
from kgbench.core.kinds import DeviceKind, Kind
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.harness.clock.statistics import DIRECT, LEAST_RATIOS, measured_noise, time_range
from kgbench.harness.machine.devices import Device
from kgbench.harness.machine.settings import Job
from kgbench.problem.model import Problem
from kgbench.scores.speedups import speedup, timed_cases

MOST_KEPT: Final = 0.5
"""Largest noise that is stored. A noisier range was measured beside other work, and would call no kernel faster."""


@dataclass(frozen=True)
class CaseRow:
    """One bench case of a library against itself."""

    problem: str
    case: str
    run: int
    device: str
    library_us: float
    ratio: float
    low: float
    high: float
    queued: bool


@dataclass(frozen=True)
class ProblemRow:
    """One problem in one run, as it would be scored."""

    problem: str
    run: int
    ratio: float
    low: float
    high: float
    launch_bound: bool


@dataclass(frozen=True)
class NullTest:
    """The results of all runs."""

    cases: tuple[CaseRow, ...]
    problems: tuple[ProblemRow, ...]
    not_timed: dict[str, str]
    """Reason why there is no time, by problem."""
    family: int
    """Problems of the benchmark: each is a chance to be called faster by noise alone."""
    changing: tuple[str, ...] = ()
    """Problems whose library gave different bits when it was called twice with the same input."""

    def faster(self, *, by_point: bool = False) -> list[ProblemRow]:
        """Problems that noise alone would call faster than the library."""
        return [row for row in self.problems if (row.ratio if by_point else row.low) > 1]

    def holds(self) -> bool:
        """Whether noise called at most one library faster in three runs of everything, and proportionally fewer in
        fewer runs.
        """
        runs = len({row.run for row in self.problems})
        return len(self.faster()) <= allowed_faster(runs)

    def by_range(self) -> dict[str, list[float]]:
        """Log ratios by range of the library's time."""
        found: dict[str, list[float]] = {}
        for row in self.cases:
            key = time_range(DeviceKind(row.device), row.library_us, row.queued)
            found.setdefault(key, []).append(math.log(row.ratio))
        return found

    def noise(self) -> dict[str, float]:
        """Half-width by range, of those with enough ratios."""
        ranges = self.by_range().items()
        return {key: measured_noise(logs, self.family) for key, logs in ranges if len(logs) >= LEAST_RATIOS}

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "summary": self.summary(), "noise": self.noise()}

    def summary(self) -> dict[str, Any]:
        """The counts that are printed."""
        long, short = ([r for r in self.cases if (r.library_us > 20) is longer] for longer in (True, False))
        return {
            "problems": len(self.problems),
            "runs": len({row.run for row in self.problems}),
            "faster_by_interval": len(self.faster()),
            "faster_by_point": len(self.faster(by_point=True)),
            "cases": len(self.cases),
            "intervals_with_1": sum(row.low <= 1 <= row.high for row in self.cases),
            "over_20_us": [sum(abs(row.ratio - 1) <= 0.01 for row in long), len(long)],
            "20_us_and_below": [sum(abs(row.ratio - 1) <= 0.03 for row in short), len(short)],
            "geometric_mean": math.exp(statistics.fmean(math.log(r.ratio) for r in self.cases)) if self.cases else None,
        }


def allowed_faster(runs: int) -> int:
    """How often noise alone may call a library faster in so many runs of everything."""
    return max(1, runs // 3)


def job_of(problem: Problem, run: int) -> Job:
    """The library in the candidate's place; each run is a sample, with inputs of its own. Large calls are left out: a
    library that fails one would not be timed.
    """
    return Job(problem.without_large_calls(), "baseline", sample=run, trusted="baseline")


def of_results(results: Sequence[Result], family: int) -> NullTest:
    """From what was found of each job; ``family`` is the number of problems of the benchmark."""
    cases: list[CaseRow] = []
    problems: list[ProblemRow] = []
    not_timed: dict[str, str] = {}
    for result in results:
        cases += _cases(result)
        estimate = speedup(result)
        if estimate is not None:
            ends = (estimate.point, estimate.low, estimate.high, estimate.launch_bound)
            problems.append(ProblemRow(result.problem, result.sample, *ends))
        elif result.kind in (Kind.COMPUTE, Kind.CREATION, Kind.RANDOM):
            not_timed[result.problem] = _why(result)
    changing = dict.fromkeys(result.problem for result in results if result.deterministic is False)
    return NullTest(tuple(cases), tuple(problems), not_timed, family, tuple(changing))


def _cases(result: Result) -> list[CaseRow]:
    return [
        CaseRow(
            result.problem, f"{case.overload} {case.id}".strip(), result.sample, result.device,
            case.timing.library_us, case.timing.ratio, case.timing.low, case.timing.high, case.timing.queued,
        )
        for case in timed_cases(result)
        if case.timing is not None and case.timing.against == "library"
    ]  # fmt: skip


def _why(result: Result) -> str:
    if result.outcome is not Outcome.PASSED:
        return f"{result.outcome}: {result.reason.strip().partition(chr(10))[0]}".removesuffix(": ")
    return result.library.reason if result.library and result.library.reason else "the clock saw no time"


def range_words(key: str) -> str:
    """``up to 30 µs``"""
    return {DIRECT: "launched directly", "inf": "longer"}.get(key, f"up to {key} µs")


# --- kept for later sessions ---


def keep_noise(device: Device, found: NullTest) -> Path | None:
    """Store the noise. Returns the file. Ranges about which this test says nothing, or too much, stay as they are. None
    where nothing can be or is to be stored.
    """
    measured = {key: width for key, width in found.noise().items() if width <= MOST_KEPT}
    if not measured:
        return None
    counts = {key: len(logs) for key, logs in found.by_range().items()}
    data = {
        "device": device.name,
        "driver": device.driver,
        "measured": datetime.now(UTC).isoformat(timespec="seconds"),
        "half_widths": noise_of(device.kind, device.name) | {key: round(value, 5) for key, value in measured.items()},
        "ratios": {key: counts[key] for key in measured},
        "family": found.family,
    }
    return keep(NOISE, device_key(device.kind, device.name), data)
