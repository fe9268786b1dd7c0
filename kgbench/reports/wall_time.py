"""Where the time of a run went: a line below its table, and the tables of ``kgbench report --costs``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Final, TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from kgbench.core.figures import percent
from kgbench.scores.wall_time import IDLE, WallTime

MOST_PROBLEMS: Final = 20
"""Problems in the table, the longest; ``--json`` has all."""
_LEAST_SHARE: Final = 0.02
"""Phases below this share of the candidates' time are left out of the line."""


def wall_time_line(spent: WallTime) -> str:
    """``159 s, 3.6 s a candidate, 12 at once: 45 % of the time timing; a candidate's time is 43 % check, …``"""
    words = f"{spent.wall_s or 0.0:.0f} s"
    if spent.per_candidate_s is not None:
        words += f", {spent.per_candidate_s:.1f} s a candidate"
    if spent.jobs > 1:
        words += f", {spent.jobs} at once" + (" on each device" if spent.devices > 1 else "")
    if spent.timed_share:
        words += f": {100 * spent.timed_share:.0f} % of the time timing"
    shares = [f"{100 * share:.0f} % {phase}" for phase, share in _shares(spent) if share >= _LEAST_SHARE]
    return f"{words}; a candidate's time is {', '.join(shares)}" if shares else words


def print_wall_time(spent: WallTime, stream: TextIO, *, as_json: bool) -> None:
    """The run's tables, or the same as JSON."""
    if as_json:
        stream.write(json.dumps(dataclasses.asdict(spent), indent=2) + "\n")
        return
    console = Console(file=stream, highlight=False)
    console.print(wall_time_line(spent), soft_wrap=True)
    for line in _turn_lines(spent):
        console.print(line, soft_wrap=True)
    console.print(_phase_table(spent))
    console.print(_problem_table(spent))
    if (left := len(spent.problems) - MOST_PROBLEMS) > 0:
        console.print(f"{left} more problems: --costs --json has all", soft_wrap=True)


def _shares(spent: WallTime) -> list[tuple[str, float]]:
    """Each phase with its share of all candidates' time, the largest first."""
    total = sum(spent.phases.values())
    shares = [(phase, seconds / total) for phase, seconds in spent.phases.items()] if total else []
    return sorted(shares, key=lambda each: -each[1])


def _turn_lines(spent: WallTime) -> Iterable[str]:
    if not spent.timed_s:
        return
    inside = "" if spent.in_windows_s is None else f", {spent.in_windows_s:.1f} s of it in {spent.windows} windows"
    yield f"timing, while every other candidate of the device stood still: {spent.timed_s:.1f} s{inside}"


def _phase_table(spent: WallTime) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Seconds of all candidates together", title_justify="left")
    table.add_column("phase")
    table.add_column("s", justify="right")
    table.add_column("share", justify="right")
    for phase, share in _shares(spent):
        table.add_row(phase, f"{spent.phases[phase]:.1f}", percent(share))
    return table


def _problem_table(spent: WallTime) -> Table:
    table = Table(box=SIMPLE_HEAD, title="Problems that took longest, in seconds", title_justify="left")
    table.add_column("problem")
    for head in ("candidates", "busy", "check", "bench", "rest", *IDLE):
        table.add_column(head, justify="right")
    for each in spent.problems[:MOST_PROBLEMS]:
        check_s, bench_s, *idle_s = (each.phases[phase] for phase in ("check", "bench", *IDLE))
        seconds = (each.busy_s, check_s, bench_s, each.busy_s - check_s - bench_s, *idle_s)
        table.add_row(each.problem, str(each.candidates), *(f"{value:.1f}" for value in seconds))
    return table
