"""Where a run's time went, against sums by hand."""

from __future__ import annotations

import dataclasses
import io
import json

import pytest

from kgbench.core.types import Result, Window
from kgbench.reports.wall_time import print_wall_time, wall_time_line
from kgbench.scores.wall_time import WallTime, wall_time
from tests.unit.made_results import result, timing

INFO = {"wall_s": 20.0, "timed_s": 5.0, "device": {"jobs": 12, "devices": [{}, {}]}}


def made(problem: str, **seconds: float) -> Result:
    windows = (Window("library", "window", 4, 900.0, 1000.0), Window("candidate", "window", 4, 1900.0, 2000.0))
    timed = dataclasses.replace(timing(1.1), windows=windows)
    return dataclasses.replace(result(problem, timed), seconds=seconds)


RESULTS = (
    made("aten/mm", check=2.0, bench=1.0, stopped=4.0, total=3.5),
    made("aten/mm", check=1.0, waited=1.0, total=1.0),
    made("aten/add", start=6.0, total=6.0),
    result("aten/sort"),
)


def spent() -> WallTime:
    return wall_time(INFO, RESULTS)


def test_sums_by_hand() -> None:
    found = spent()
    assert (found.candidates, found.devices, found.jobs) == (3, 2, 12)
    assert found.per_candidate_s == pytest.approx(20 / 3)
    assert found.timed_share == pytest.approx(5 / 40)
    assert (found.windows, found.in_windows_s) == (6, pytest.approx(0.009))
    assert {phase: seconds for phase, seconds in found.phases.items() if seconds} == {
        "start": 6.0, "check": 3.0, "bench": 1.0, "other": 0.5, "stopped": 4.0, "waited": 1.0,
    }  # fmt: skip


def test_the_longest_problem_stands_first_and_waiting_does_not_count() -> None:
    assert [(each.problem, each.candidates, each.busy_s) for each in spent().problems] == [
        ("aten/add", 1, 6.0),
        ("aten/mm", 2, 4.5),
    ]


def test_the_line_below_the_table() -> None:
    assert wall_time_line(spent()) == (
        "20 s, 6.7 s a candidate, 12 at once on each device: 12 % of the time timing; "
        "a candidate's time is 39 % start, 26 % stopped, 19 % check, 6 % bench, 6 % waited, 3 % other"
    )


def test_a_run_in_which_nothing_was_evaluated() -> None:
    assert wall_time_line(wall_time({"wall_s": 0.0}, ())) == "0 s"


def test_tables_and_json_say_the_same() -> None:
    text, data = io.StringIO(), io.StringIO()
    print_wall_time(spent(), text, as_json=False)
    print_wall_time(spent(), data, as_json=True)
    assert "5.0 s, 0.0 s of it in 6 windows" in text.getvalue()
    assert text.getvalue().index("aten/add") < text.getvalue().index("aten/mm")
    assert json.loads(data.getvalue())["problems"][1]["phases"]["stopped"] == 4.0
