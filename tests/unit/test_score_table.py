"""The table of scores: what each is, and that every report has what the table says. ``median speedup`` by hand."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import TextIO

import numpy as np
import pytest

from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.reports.columns import UNIT_WORDS
from kgbench.reports.comparison import BOTH, Side, compare
from kgbench.reports.formats import print_csv, print_latex, print_markdown
from kgbench.reports.json_data import as_json
from kgbench.reports.model import Report, report_of
from kgbench.reports.page.overview import overview
from kgbench.reports.page.source import page_source
from kgbench.scores.bootstrap import Sampled, Statistic, draws
from kgbench.scores.rows import THRESHOLDS, rows
from kgbench.scores.samples import Selected
from kgbench.scores.score import Over, Place, Score, Unit
from kgbench.scores.table import all_scores, scores_in
from kgbench.store.reader import read_run
from tests.unit.made_results import result, timing
from tests.unit.test_comparison import stored

MEDIAN = "median speedup"
RATIOS = (1.0, 2.0, 50.0)
FOUND = [*(result(f"aten/p{n}", timing(ratio)) for n, ratio in enumerate(RATIOS)),
         result("aten/wrong", outcome=Outcome.WRONG_VALUE)]  # fmt: skip


def selected(*found: Result) -> list[Selected]:
    return [Selected(each.problem, "compute") for each in found]


class TestTable:
    def test_names_are_unique_and_every_table_has_scores(self) -> None:
        names = [score.name for score in all_scores((0.5, 1.0), (1, 2))]
        assert len(names) == len(set(names))
        for place in Place:
            assert scores_in(place, (2,)), place

    def test_every_unit_has_words(self) -> None:
        assert set(UNIT_WORDS) == set(Unit)

    def test_what_has_an_interval_has_a_value(self) -> None:
        (row,) = rows(selected(*FOUND), FOUND, seed="run")
        drawn = {score.name for score in all_scores(THRESHOLDS) if score.resample}
        assert set(row.intervals) == drawn & set(row.values)
        assert {"correct", "fast_1", "speedup", MEDIAN, "speedup over all"} <= set(row.intervals)


class TestMedian:
    def test_is_the_middle_of_the_correct_ones(self) -> None:
        (row,) = rows(selected(*FOUND), FOUND)
        assert row.values[MEDIAN] == pytest.approx(2.0)
        (row,) = rows(selected(*FOUND[:2]), FOUND[:2])
        assert row.values[MEDIAN] == pytest.approx(math.sqrt(2.0))

    def test_is_nothing_where_nothing_is_correct_or_speed_means_nothing(self) -> None:
        assert MEDIAN not in rows(selected(*FOUND[3:]), FOUND[3:])[0].values
        found = [result("aten/a", timing(2.0), interpreted=True)]
        assert MEDIAN not in rows(selected(*found), found)[0].values

    def test_a_draw_has_the_middle_of_the_problems_that_it_took(self) -> None:
        """One problem of two at 4, one at 1, one that is wrong: a draw is one of these, or their geometric mean."""
        sampled = [Sampled(str(n), np.array([[number]])) for n, number in enumerate((math.log(4), 0.0, math.nan))]
        drawn = draws(sampled, {MEDIAN: Statistic(0, Over.MEDIAN)}, "seed")[MEDIAN]
        known = sorted({round(value, 9) for value in drawn[~np.isnan(drawn)]})
        assert known == [1.0, 2.0, 4.0]
        assert 0 < np.isnan(drawn).mean() < 0.1  # 1/27 of the draws take nothing but what is wrong

    def test_one_kernel_that_is_far_faster_moves_the_mean_and_not_the_median(self) -> None:
        found = [result(f"aten/p{n}", timing(1.0 + n / 100)) for n in range(40)]
        fast = [*found[:-1], result("aten/p39", timing(90.0))]
        before, after = (rows(selected(*found), each, seed="run")[0] for each in (found, fast))
        assert after.values["speedup"] > 1.1 * before.values["speedup"]
        assert after.values[MEDIAN] == before.values[MEDIAN]
        low, high = after.intervals[MEDIAN]
        assert 1.0 < low < after.values[MEDIAN] < high < 1.4


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return stored(tmp_path, "a", FOUND)


@pytest.mark.parametrize("printed", [print_markdown, print_latex])
def test_text_has_the_median(run: Path, printed: Callable[[Report, TextIO], None]) -> None:
    stream = io.StringIO()
    printed(report_of(read_run(run)), stream)
    assert "median" in stream.getvalue()
    assert "2.00" in stream.getvalue()


def test_data_has_the_median(run: Path) -> None:
    report = report_of(read_run(run), by="source")
    stream = io.StringIO()
    print_csv(report, stream)
    head, line = (each.split(",") for each in stream.getvalue().splitlines())
    assert float(dict(zip(head, line, strict=True))["median_speedup"]) == pytest.approx(2.0)
    assert "median_speedup_low" in head
    row = json.loads(json.dumps(as_json(report)))["scores"][0]
    assert row["values"][MEDIAN] == pytest.approx(2.0)
    assert MEDIAN in row["intervals"]


def test_page_and_comparison_have_the_median(run: Path, tmp_path: Path) -> None:
    page = overview(page_source(read_run(run, with_windows=True), lambda result: ""))
    figures = {name: value for name, value, _ in page["headline"][0]["figures"]}
    assert figures[MEDIAN] == "2.00x"
    twice = [result(f"aten/p{n}", timing(2 * ratio)) for n, ratio in enumerate(RATIOS)] + FOUND[3:]
    found = compare(Side.of(read_run(run)), Side.of(read_run(stored(tmp_path, "b", twice))))
    (change,) = (each for each in found.changes if each.score == f"{MEDIAN}{BOTH}")
    assert (change.problems, change.change, change.is_ratio) == (3, pytest.approx(2.0), True)


def test_a_score_that_runs_are_compared_by_needs_an_interval() -> None:
    with pytest.raises(ValueError, match=r"score 'least'.* needs resample"):
        Score("least", "least", Unit.RATIO, lambda basis: None, places={Place.COMPARED: 1})
