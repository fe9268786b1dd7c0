"""Bootstrap intervals against what can be said of them by hand, and the scores that were added beside them."""

from __future__ import annotations

import dataclasses
import json
import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.core.types import Result
from kgbench.problem.cases import bench_cases
from kgbench.problem.registry import load_problem
from kgbench.scores import bootstrap
from kgbench.scores import rows as scores
from kgbench.scores.bootstrap import DRAWS, Sampled, Statistic
from kgbench.scores.overall import MACRO_AVERAGE, MICRO_AVERAGE, overall
from kgbench.scores.per_problem import problem_file, problem_scores, roofline_of
from kgbench.scores.samples import Selected, is_compiled
from kgbench.scores.score import Over
from tests.unit.made_results import bench, result, timing

RIGHT_HALF = [result("aten/a", timing(2.0)), result("aten/b", outcome=Outcome.WRONG_VALUE)]


def chosen(*names: str, samples: int = 1, kind: str = "compute", category: str = "") -> list[Selected]:
    return [Selected(name, kind, samples=samples, category=category) for name in names]


def sampled(of_problem: Result, count: int, right: int) -> list[Result]:
    """``count`` samples of which the first ``right`` are correct and as fast as this one."""
    return [
        dataclasses.replace(
            of_problem, sample=number, outcome=Outcome.PASSED if number < right else Outcome.WRONG_VALUE
        )
        for number in range(count)
    ]


class TestInterval:
    def test_of_one_sample_each_is_that_of_a_binomial(self) -> None:
        """50 of 100 problems right: the count of a draw is binomial, 40 to 60 in 95 of 100 draws."""
        names = [f"aten/p{n}" for n in range(100)]
        found = [result(name, timing(1.0)) for name in names[:50]]
        (row,) = scores.rows(chosen(*names), found, seed="run")
        low, high = row.intervals["correct"]
        assert (low, high) == (pytest.approx(0.40, abs=0.011), pytest.approx(0.60, abs=0.011))

    def test_samples_of_one_problem_are_drawn(self) -> None:
        """5 of 10 samples: 2 to 8 right in 95 of 100 draws of a binomial."""
        (row,) = scores.rows(chosen("aten/a", samples=10), sampled(result("aten/a", timing(1.0)), 10, 5), seed="run")
        low, high = row.intervals["correct"]
        assert low in (0.2, pytest.approx(0.25, abs=0.06))
        assert high == pytest.approx(0.8, abs=0.06)

    def test_samples_and_problems_together_are_wider_than_problems_alone(self) -> None:
        """Every problem has half of its samples right: problems alone would leave no doubt at all."""
        names = [f"aten/p{n}" for n in range(20)]
        found = [each for name in names for each in sampled(result(name, timing(1.0)), 4, 2)]
        (row,) = scores.rows(chosen(*names, samples=4), found, seed="run")
        low, high = row.intervals["correct"]
        # 80 fair coins: 0.5 ± 1.96 · 0.5 / √80.
        assert (low, high) == (pytest.approx(0.39, abs=0.025), pytest.approx(0.61, abs=0.025))

    def test_of_the_geometric_mean(self) -> None:
        """Half the problems at 1, half at 4: log2 of the mean is 1 ± 1.96 · 1 / √100."""
        names = [f"aten/p{n}" for n in range(100)]
        found = [result(name, timing(1.0 if n % 2 else 4.0)) for n, name in enumerate(names)]
        (row,) = scores.rows(chosen(*names), found, seed="run")
        low, high = (math.log2(end) for end in row.intervals["speedup"])
        assert (low, high) == (pytest.approx(0.804, abs=0.03), pytest.approx(1.196, abs=0.03))

    def test_is_the_same_for_ever_and_another_for_another_run(self) -> None:
        names = [f"aten/p{n}" for n in range(30)]
        found = [result(name, timing(0.5 + n / 30)) for n, name in enumerate(names[:20])]
        first, again, other = (scores.rows(chosen(*names), found, seed=seed)[0].intervals for seed in ("a", "a", "b"))
        assert first == again
        assert first != other

    def test_does_not_depend_on_which_p_are_shown(self) -> None:
        found = [result(f"aten/p{n}", timing(0.5 + n / 5)) for n in range(9)]
        names = [each.problem for each in found]
        few = scores.rows(chosen(*names), found, (1.0,), seed="run")[0].intervals
        many = scores.rows(chosen(*names), found, (0.5, 1.0, 2.0), seed="run")[0].intervals
        assert few.items() <= many.items()

    def test_one_sample_of_one_problem_has_none(self) -> None:
        assert scores.rows(chosen("aten/a"), RIGHT_HALF[:1], seed="run")[0].intervals == {}

    def test_none_is_computed_without_a_seed(self) -> None:
        assert scores.rows(chosen("aten/a", "aten/b"), RIGHT_HALF)[0].intervals == {}

    def test_speed_in_the_interpreter_has_none(self) -> None:
        found = [dataclasses.replace(each, interpreted=True) for each in RIGHT_HALF]
        (row,) = scores.rows(chosen("aten/a", "aten/b"), found, seed="run")
        assert sorted(row.intervals) == ["compiled", "correct", "rejected"]

    def test_missing_samples_are_failures_in_every_draw(self) -> None:
        (row,) = scores.rows(chosen("aten/a", "aten/b", samples=4), [result("aten/a", timing(2.0))], seed="run")
        assert row.share_correct() == 1 / 8
        assert row.intervals["correct"][1] <= 0.75

    def test_210_problems_of_10_samples_take_no_time_to_speak_of(self) -> None:
        names = [f"aten/p{n}" for n in range(210)]
        found = [each for n, name in enumerate(names) for each in sampled(result(name, timing(1.0)), 10, n % 11)]
        picked = chosen(*names, samples=10)
        scores.rows(picked[:3], found, seed="warm")
        begin = time.process_time()
        scores.rows(picked, found, seed="run")
        assert time.process_time() - begin < 2.0  # 0.4 s on an idle core

    @given(
        counts=st.lists(st.tuples(st.integers(0, 4), st.floats(0.01, 50)), min_size=2, max_size=8),
        seed=st.text(max_size=5),
    )
    @settings(max_examples=10, deadline=None)
    def test_ends_are_ordered_inside_what_there_is_and_hold_what_all_draws_have(
        self, counts: list[tuple[int, float]], seed: str
    ) -> None:
        names = [f"aten/p{n}" for n in range(len(counts))]
        found = [
            each
            for name, (right, ratio) in zip(names, counts, strict=True)
            for each in sampled(result(name, timing(ratio)), 4, right)
        ]
        (row,) = scores.rows(chosen(*names, samples=4), found, seed=seed)
        for name, (low, high) in row.intervals.items():
            assert low <= high, name
            assert "speedup" in name or 0 <= low <= high <= 1 + 1e-12
        ratios = [ratio for right, ratio in counts if right]
        if "speedup" in row.intervals:
            low, high = row.intervals["speedup"]
            assert min(ratios) * (1 - 1e-9) <= low <= high <= max(ratios) * (1 + 1e-9)
        if all(right in (0, 4) for right, _ in counts) and len({right for right, _ in counts}) == 1:
            assert row.intervals["correct"] == (row.share_correct(), row.share_correct())


class TestDraws:
    def test_means_of_draws_are_the_scores(self) -> None:
        """Of a share the bootstrap has no bias."""
        shares = np.array([[1.0, 0.0, 0.0, 0.0]])
        statistics = {"correct": Statistic(0, Over.MEAN), "pass@2": Statistic(0, Over.MEAN, best_of=2)}
        drawn = bootstrap.draws([Sampled("a", shares), Sampled("b", 1 - shares)], statistics, "seed")
        assert drawn["correct"].shape == (DRAWS,)
        assert drawn["correct"].mean() == pytest.approx(0.5, abs=0.02)
        assert drawn["pass@2"].min() >= 0
        assert drawn["pass@2"].max() <= 1

    def test_speedup_is_unknown_in_a_draw_without_any(self) -> None:
        one, other = Sampled("a", np.zeros((1, 1))), Sampled("b", np.full((1, 1), np.nan))
        drawn = bootstrap.draws([one, other], {"speedup": Statistic(0, Over.GEOMETRIC_MEAN)}, "seed")
        assert np.isnan(drawn["speedup"]).mean() == pytest.approx(0.25, abs=0.05)

    def test_interval_needs_a_value_in_half_of_the_draws(self) -> None:
        assert bootstrap.interval(np.array([1.0, np.nan, np.nan])) is None
        assert bootstrap.interval(np.array([1.0, 1.0, np.nan])) == (1.0, 1.0)


class TestRates:
    @pytest.mark.parametrize(
        ("outcome", "cases", "compiled"),
        [
            (Outcome.PASSED, [], True),
            (Outcome.WRONG_VALUE, [Outcome.WRONG_VALUE], True),
            (Outcome.CRASHED, [Outcome.CRASHED], True),
            (Outcome.REJECTED, [], False),
            (Outcome.REJECTED, [Outcome.PASSED], True),
            (Outcome.COMPILE_ERROR, [], False),
            (Outcome.COMPILE_ERROR, [Outcome.PASSED, Outcome.COMPILE_ERROR], False),
            (Outcome.TIMEOUT, [], False),
            (Outcome.NO_CODE, [], False),
            (Outcome.SKIPPED, [Outcome.SKIPPED], False),
        ],
    )
    def test_compiled_is_called(self, outcome: Outcome, cases: list[Outcome], compiled: bool) -> None:
        found = result("aten/a", outcome=outcome)
        found = dataclasses.replace(found, cases=tuple(bench(None, each) for each in cases))
        assert is_compiled(found) is compiled

    def test_rates_are_means_over_samples(self) -> None:
        found = [
            dataclasses.replace(result("aten/a", outcome=Outcome.REJECTED), sample=0),
            dataclasses.replace(result("aten/a", timing(1.0)), sample=1),
        ]
        (row,) = scores.rows(chosen("aten/a", "aten/b", samples=2), found)
        assert (row.compiled, row.rejected) == (0.5, 0.5)


class TestOverAll:
    def test_a_failure_counts_as_a_thousandth(self) -> None:
        (row,) = scores.rows(chosen("aten/a", "aten/b"), RIGHT_HALF)
        assert row.speedup_over_all == pytest.approx(math.sqrt(2.0 * 0.001))

    def test_so_does_what_is_missing(self) -> None:
        (row,) = scores.rows(chosen("aten/a", "aten/b"), RIGHT_HALF[:1])
        assert row.speedup_over_all == pytest.approx(math.sqrt(2.0 * 0.001))

    def test_of_samples_is_averaged_per_problem_first(self) -> None:
        found = sampled(result("aten/a", timing(4.0)), 2, 1) + sampled(result("aten/b", timing(1.0)), 2, 2)
        (row,) = scores.rows(chosen("aten/a", "aten/b", samples=2), found)
        assert row.speedup_over_all == pytest.approx((math.sqrt(4.0 * 0.001) * 1.0) ** 0.5)

    def test_is_nothing_where_problems_are_never_timed(self) -> None:
        assert scores.rows(chosen("aten/a", kind="view"), RIGHT_HALF)[0].speedup_over_all is None
        interpreted = [dataclasses.replace(each, interpreted=True) for each in RIGHT_HALF]
        assert scores.rows(chosen("aten/a", "aten/b"), interpreted)[0].speedup_over_all is None


class TestOverall:
    SELECTED = (*chosen("aten/a", "aten/b", "aten/c"), *chosen("vllm/a"))
    FOUND = (result("aten/a", timing(2.0)), result("vllm/a", timing(8.0)))

    def test_problems_alike_and_sources_alike(self) -> None:
        by_problem, by_source = overall(self.SELECTED, self.FOUND, (1.0,))
        assert (by_problem.source, by_source.source) == (MICRO_AVERAGE, MACRO_AVERAGE)
        assert by_problem.share_correct() == 2 / 4
        assert by_source.share_correct() == pytest.approx((1 / 3 + 1) / 2)
        fast = [row.fast_at(1.0) for row in (by_problem, by_source)]
        assert [each.interval for each in fast if each] == [2 / 4, pytest.approx(2 / 3)]
        assert by_problem.speedup is not None
        assert by_source.speedup is not None
        assert by_problem.speedup.point == pytest.approx(4.0)
        assert by_source.speedup.point == pytest.approx(4.0)
        assert by_source.speedup_over_all == pytest.approx(math.sqrt((2.0 * 1e-6) ** (1 / 3) * 8.0))

    def test_one_source_has_none(self) -> None:
        assert overall(chosen("aten/a", "aten/b"), RIGHT_HALF, (1.0,)) == ()

    def test_problems_that_are_not_compute_stay_out(self) -> None:
        picked = (*self.SELECTED, *chosen("aten/t", kind="view"))
        assert [row.problems for row in overall(picked, self.FOUND, (1.0,))] == [4, 4]

    def test_intervals_of_sources_alike_leave_the_one_problem_of_vllm_in_every_draw(self) -> None:
        _, by_source = overall(self.SELECTED, self.FOUND, (1.0,), seed="run")
        low, high = by_source.intervals["correct"]
        assert (low, high) == (0.5, 1.0)


class TestBy:
    def test_category_joins_sources_and_is_sorted(self) -> None:
        picked = [*chosen("vllm/a", category="softmax"), *chosen("aten/a", category="matmul"),
                  *chosen("aten/b", category="softmax")]  # fmt: skip
        rows = scores.rows(picked, RIGHT_HALF, by="category")
        assert [(row.source, row.problems, row.correct) for row in rows] == [("matmul", 1, 1.0), ("softmax", 2, 0.0)]

    def test_problem_kind_and_model(self) -> None:
        picked = [*chosen("aten/a"), *chosen("aten/b"), *chosen("aten/t", kind="view")]
        assert [row.source for row in scores.rows(picked, RIGHT_HALF, by="problem")] == ["aten/a", "aten/b", "aten/t"]
        assert [row.source for row in scores.rows(picked, RIGHT_HALF, by="kind")] == ["compute", "view"]
        two = [*RIGHT_HALF, dataclasses.replace(RIGHT_HALF[0], model="n", problem="aten/b")]
        rows = [row for row in scores.rows(picked, two, by="model") if row.kinds == "compute"]
        assert [(row.source, row.correct, row.samples) for row in rows] == [("m", 1.0, 1), ("n", 1.0, 1)]


class TestPerProblem:
    def test_best_median_spread_and_outcomes(self) -> None:
        found = [
            dataclasses.replace(result("aten/a", timing(ratio)), sample=number)
            for number, ratio in enumerate((1.0, 4.0, 2.0))
        ]
        found.append(dataclasses.replace(result("aten/a", outcome=Outcome.WRONG_VALUE), sample=3))
        (each,) = problem_scores({}, chosen("aten/a", samples=5), found)
        assert (each.samples, each.correct, each.median, each.spread) == (5, 3, 2.0, 4.0)
        assert each.best is not None
        assert each.best.point == pytest.approx(4.0)
        assert each.outcomes == {"passed": 3, "wrong value": 1, "not evaluated": 1}
        assert each.usd is None

    def test_one_sample_has_no_spread_and_nothing_right_no_best(self) -> None:
        each, other = problem_scores({}, chosen("aten/a", "aten/b"), RIGHT_HALF)
        assert (each.spread, each.median) == (None, 2.0)
        assert (other.best, other.median, other.correct) == (None, None, 0)

    def test_roofline_of_a_group_is_a_geometric_mean_of_those_known(self) -> None:
        picked = [*chosen("aten/a", "aten/b", "vllm/c", "vllm/d", "cublas/f"), *chosen("vllm/e", kind="creation")]
        rooflines = {"aten/a": 0.1, "aten/b": 0.4, "vllm/c": 0.3, "vllm/e": 0.6}
        found = scores.rows(picked, [], rooflines=rooflines)
        assert {(row.source, row.kinds): row.values.get("roofline share") for row in found} == {
            ("aten", "compute"): pytest.approx(0.2),
            ("vllm", "compute"): pytest.approx(0.3),
            ("vllm", "all kinds"): pytest.approx(0.18**0.5),
            ("cublas", "compute"): None,
        }

    def test_roofline_of_a_right_kernel(self) -> None:
        """Reads and writes a million float32 in 100 µs: 80 of 1000 GB/s; of two cases the geometric mean counts."""
        problem = load_problem(problems_dir() / "aten" / "neg.yaml")
        large, small = (
            dataclasses.replace(bench(timing(1.0)), variables={"self_shape": (1000, width), "self_dtype": "float32"})
            for width in (1000, 10)
        )
        peaks = {"gb_per_s": 1000.0, "gflop_per_s": {}}
        found = dataclasses.replace(result("aten/neg"), cases=(large,))
        assert roofline_of(found, problem, peaks) == pytest.approx(0.08)
        both = dataclasses.replace(found, cases=(large, small))
        assert roofline_of(both, problem, peaks) == pytest.approx(0.008)
        assert roofline_of(dataclasses.replace(found, interpreted=True), problem, peaks) is None
        assert roofline_of(found, problem, None) is None

    def test_a_changed_description_leaves_the_roofline_of_an_earlier_result(self) -> None:
        """Its timed calls are still those of the file; of a call that is there no more nothing is known."""
        problem = load_problem(problems_dir() / "aten" / "neg.yaml")
        overload = problem.overloads[0]
        today = bench_cases(overload, "cpu")[0]
        timed = dataclasses.replace(
            bench(timing(1.0)), id=today.id, overload=today.overload, variables=json.loads(json.dumps(today.variables))
        )
        found = result("aten/neg", problem_sha256="an earlier file's", cases=(timed,))
        assert problem_file(found) == problem
        other = dataclasses.replace(timed, variables=timed.variables | {"self_shape": [3, 5]})
        assert problem_file(dataclasses.replace(found, cases=(other,))) is None
        assert problem_file(dataclasses.replace(found, cases=(dataclasses.replace(timed, id="bench-9"),))) is None

    def test_roofline_is_unknown_without_a_problem_file(self) -> None:
        peaks = {"gb_per_s": 100.0, "gflop_per_s": {}}
        assert roofline_of(RIGHT_HALF[0], None, peaks) is None
