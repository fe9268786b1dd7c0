"""Where the wall time of a run went, per phase and per problem, as pure functions of stored results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kgbench.core.types import Result

IDLE: Final = ("stopped", "waited")
"""Phases in which a candidate's referee stands still. Runs before November 2026 have all of them as ``waited``."""
PHASES: Final = ("library", "start", "import", "check", "bench", "observe", "other", *IDLE)
"""Phases of a candidate's evaluation, in their order; docs/runs.md says what each is."""


@dataclass(frozen=True)
class ProblemTime:
    """Seconds of all candidates of one problem together."""

    problem: str
    candidates: int
    phases: dict[str, float]
    """Seconds by phase of ``PHASES``."""

    @property
    def busy_s(self) -> float:
        """Seconds without those in which the candidates' referees waited or were stopped."""
        return sum(seconds for phase, seconds in self.phases.items() if phase not in IDLE)


@dataclass(frozen=True)
class WallTime:
    """Of one run. Seconds."""

    wall_s: float | None
    """Seconds from the first candidate to the last verdict; None where the run does not say."""
    devices: int
    jobs: int
    """Candidates that were at work at once on each device."""
    candidates: int
    """Candidates that were evaluated."""
    timed_s: float
    """Seconds of all devices together in which one candidate was timed and the others stood still."""
    windows: int
    """Timed windows of library and candidate."""
    in_windows_s: float | None
    """Seconds in them, from the release of their inputs to their secured outputs; None where windows were not read."""
    phases: dict[str, float]
    """Sums over all candidates, by phase of ``PHASES``."""
    problems: tuple[ProblemTime, ...]
    """The longest first, by ``busy_s``."""

    @property
    def per_candidate_s(self) -> float | None:
        """Wall seconds for each candidate; None where nothing is known of them."""
        return self.wall_s / self.candidates if self.wall_s is not None and self.candidates else None

    @property
    def timed_share(self) -> float | None:
        """Share of the devices' time that was spent timing, 0 to 1."""
        return self.timed_s / (self.wall_s * self.devices) if self.wall_s else None


def wall_time(info: Mapping[str, Any], results: Sequence[Result]) -> WallTime:
    """Where the time went. ``info`` is run.json's content; ``results`` have windows where these are to be summed."""
    evaluated = [result for result in results if result.seconds]
    device = info.get("device") or {}
    timings = [case.timing for result in evaluated for case in result.cases if case.timing is not None]
    windows = [window for timing in timings for window in timing.windows]
    by_problem: dict[str, list[Result]] = {}
    for result in evaluated:
        by_problem.setdefault(result.problem, []).append(result)
    problems = [ProblemTime(name, len(found), _phases(found)) for name, found in by_problem.items()]
    return WallTime(
        wall_s=info.get("wall_s"),
        devices=max(1, len(device.get("devices") or ())),
        jobs=device.get("jobs", 1),
        candidates=len(evaluated),
        timed_s=info.get("timed_s", 0.0),
        windows=len(windows),
        in_windows_s=sum(window.secured_us for window in windows) / 1e6 if windows or not timings else None,
        phases=_phases(evaluated),
        problems=tuple(sorted(problems, key=lambda each: -each.busy_s)),
    )


def _phases(results: Sequence[Result]) -> dict[str, float]:
    """Seconds by phase; ``other`` is what the phases leave of the total, which has no waiting in it."""
    sums: dict[str, float] = dict.fromkeys((*PHASES, "total"), 0.0)
    for result in results:
        for phase, seconds in result.seconds.items():
            sums[phase] = sums.get(phase, 0.0) + seconds
    named = sum(sums[phase] for phase in PHASES if phase not in ("other", *IDLE))
    sums["other"] = max(0.0, sums["total"] - named)
    return {phase: round(sums[phase], 3) for phase in PHASES}
