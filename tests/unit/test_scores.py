"""Scores against tables computed by hand."""

from __future__ import annotations

import dataclasses
import math

import pytest

from kgbench.core.outcomes import Outcome
from kgbench.core.types import Timing
from kgbench.scores import rows as scores
from kgbench.scores.samples import Selected, is_fast
from kgbench.scores.speedups import Estimate, speedup
from tests.unit.made_results import NO_LIBRARY, WIDTH, bench, result, timing


def selected(*names: str, kind: str = "compute") -> list[Selected]:
    return [Selected(name, kind) for name in names]


def ratios(estimate: Estimate | None) -> tuple[float, float, float]:
    assert estimate is not None
    return estimate.point, estimate.low, estimate.high


class TestSpeedupOfAProblem:
    @pytest.mark.parametrize(
        ("times", "point"),
        [
            ([timing(0.5)], 0.5),
            ([timing(0.5), timing(2.0)], 1.0),
            ([timing(1.0), timing(8.0)], math.sqrt(8.0)),
            # launch-bound cases are left out,
            ([timing(0.5), timing(4.0, launch_bound=True)], 0.5),
            # unless all are.
            ([timing(2.0, launch_bound=True), timing(8.0, launch_bound=True)], 4.0),
            # Each ratio is clamped to [1/1000, 100] before the mean.
            ([timing(1e9)], 100.0),
            ([timing(1e-9)], 0.001),
            ([timing(1e9), timing(1.0)], 10.0),
            # A time against the fallback is none against the library.
            ([timing(0.5), timing(8.0, against="fallback")], 0.5),
            # What is no ratio is no time.
            ([timing(0.5), timing(math.nan)], 0.5),
            ([timing(0.5), timing(0.0)], 0.5),
        ],
    )
    def test_is_the_geometric_mean_of_its_cases(self, times: list[Timing], point: float) -> None:
        assert ratios(speedup(result("aten/mm", *times)))[0] == pytest.approx(point)

    def test_interval_keeps_the_half_width_of_its_cases(self) -> None:
        """Four cases of ±2 % give ±2 %, not ±1 %: their noise is shared."""
        point, low, high = ratios(speedup(result("aten/mm", *[timing(0.5)] * 4)))
        assert (point, low, high) == pytest.approx((0.5, 0.5 / WIDTH, 0.5 * WIDTH))

    def test_interval_averages_half_widths_in_the_logarithm(self) -> None:
        _, low, high = ratios(speedup(result("aten/mm", timing(1.0, width=1.0), timing(1.0, width=1.21))))
        assert (low, high) == pytest.approx((1 / 1.1, 1.1))

    def test_interval_that_is_no_number_is_as_wide_as_can_be(self) -> None:
        lost = dataclasses.replace(timing(1.0), low=math.nan, high=math.inf)
        assert ratios(speedup(result("aten/mm", lost))) == pytest.approx((1.0, 0.001, 100.0))

    @pytest.mark.parametrize(
        ("ratio", "flagged", "clamped"), [(9.9, False, False), (10.1, True, False), (101, True, True)]
    )
    def test_beyond_ten_is_flagged(self, ratio: float, flagged: bool, clamped: bool) -> None:
        estimate = speedup(result("aten/mm", timing(ratio), timing(0.01)))
        assert estimate is not None
        assert (estimate.flagged, estimate.clamped) == (flagged, clamped)

    @pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome is not Outcome.PASSED])
    def test_what_is_not_right_has_none(self, outcome: Outcome) -> None:
        assert speedup(result("aten/mm", timing(2.0), outcome=outcome)) is None

    def test_check_cases_are_never_timed(self) -> None:
        check = dataclasses.replace(bench(timing(50.0)), phase="check")
        assert speedup(dataclasses.replace(result("aten/mm"), cases=(check,))) is None


class TestFast:
    @pytest.mark.parametrize(
        ("ratio", "p", "by_interval", "by_point"),
        [
            (1.05, 1.0, True, True),  # low end 1.029
            (1.01, 1.0, False, True),  # low end 0.990
            (1.00, 1.0, False, False),  # not more than p
            (0.60, 0.5, True, True),
            (2.10, 2.0, True, True),
            (2.03, 2.0, False, True),
        ],
    )
    def test_interval_must_lie_above_p(self, ratio: float, p: float, by_interval: bool, by_point: bool) -> None:
        one = result("aten/mm", timing(ratio))
        assert is_fast(one, p) is by_interval
        assert is_fast(one, p, by_point=True) is by_point

    def test_low_end_equal_to_p_is_not_fast(self) -> None:
        assert not is_fast(result("aten/mm", timing(1.0, width=1.0)), 1.0)

    def test_without_a_library_only_fast_0_counts(self) -> None:
        one = result("vllm/rms_norm", timing(5.0, against="fallback"), library=NO_LIBRARY)
        assert is_fast(one, 0)
        assert not is_fast(one, 0.5)

    def test_interpreted_speed_means_nothing(self) -> None:
        one = result("aten/mm", timing(5.0), interpreted=True)
        assert is_fast(one, 0)
        assert not is_fast(one, 0.5, by_point=True)


class TestRow:
    def test_hand_computed_source(self) -> None:
        """Eight problems; three right, two of them fast, one without a library; the denominator stays eight."""
        chosen = selected(*(f"cublas/p{number}" for number in range(8)))
        found = [
            result("cublas/p0", timing(2.0)),
            result("cublas/p1", timing(1.01)),
            result("cublas/p2", timing(7.0, against="fallback"), library=NO_LIBRARY),
            result("cublas/p3", timing(9.0), outcome=Outcome.WRONG_VALUE),
            result("cublas/p4", outcome=Outcome.NO_CANDIDATE, library=None),
            result("cublas/p5", outcome=Outcome.SKIPPED, library=None),
            result("cublas/p6", outcome=Outcome.HARNESS_ERROR, library=None),
        ]
        (row,) = scores.rows(chosen, found)
        assert (row.problems, row.submitted, row.correct, row.not_evaluated) == (8, 6, 3, 1)
        assert row.share_correct() == 3 / 8
        assert [(fast.p, fast.interval, fast.point) for fast in row.fast] == [
            (0.5, 2 / 8, 2 / 8),
            (0.8, 2 / 8, 2 / 8),
            (1.0, 1 / 8, 2 / 8),
            (1.2, 1 / 8, 1 / 8),
            (1.5, 1 / 8, 1 / 8),
            (2.0, 0, 0),
        ]
        assert ratios(row.speedup) == pytest.approx((m := math.sqrt(2.02), m / WIDTH, m * WIDTH))
        assert row.speedup is not None
        assert row.speedup.count == 2
        assert ratios(row.fallback_speedup)[0] == pytest.approx(7.0)
        assert row.against_library == 3
        assert row.no_library == {"cublas/p2": "vLLM is not installed"}
        assert row.against_library + len(row.no_library) <= row.problems
        assert row.outcomes == {
            "passed": 3,
            "wrong value": 1,
            "no candidate": 1,
            "skipped": 1,
            "harness error": 1,
        }

    def test_denominator_is_what_was_selected_and_not_what_was_handed_in(self) -> None:
        (row,) = scores.rows(selected("aten/a", "aten/b", "aten/c"), [result("aten/a", timing(2.0))])
        assert row.fast_at(1.0) == scores.FastP(1.0, 1 / 3, 1 / 3)

    def test_result_of_a_problem_that_was_not_selected_is_ignored(self) -> None:
        (row,) = scores.rows(selected("aten/a"), [result("aten/a", timing(0.5)), result("aten/b", timing(9.0))])
        assert (row.correct, row.outcomes) == (1, {"passed": 1})

    def test_subset_names_the_declared_size(self) -> None:
        (row,) = scores.rows(selected("cublas/a", "cublas/b"), [], declared={"cublas": 50})
        assert (row.is_subset(), row.selected, row.declared) == (True, 2, 50)

    def test_full_run_is_no_subset(self) -> None:
        (row,) = scores.rows(selected(*(f"vllm/p{number}" for number in range(50))), [], declared={"vllm": 50})
        assert not row.is_subset()

    def test_50_of_51_is_a_subset(self) -> None:
        (row,) = scores.rows(selected(*(f"vllm/p{number}" for number in range(50))), [], declared={"vllm": 51})
        assert row.is_subset()

    def test_own_problems_do_not_fill_up_the_declared_ones(self) -> None:
        chosen = [*selected(*(f"vllm/p{number}" for number in range(49))), Selected("vllm/mine", "compute", own=True)]
        (row,) = scores.rows(chosen, [], declared={"vllm": 50})
        assert (row.is_subset(), row.problems, row.selected, row.own) == (True, 50, 49, 1)

    def test_only_rows_by_source_are_compared_with_a_sources_size(self) -> None:
        for by in ("problem", "category", "kind", "all"):
            (row,) = scores.rows([Selected("vllm/a", "compute", category="vllm")], [], by=by, declared={"vllm": 50})
            assert row.declared is None

    def test_source_of_the_users_own_has_no_declared_size(self) -> None:
        (row,) = scores.rows(selected("mine/a"), [], declared={"vllm": 50})
        assert (row.declared, row.is_subset()) == (None, False)

    def test_kind_compute_is_the_headline_and_all_kinds_stand_beside_it(self) -> None:
        chosen = [*selected("aten/mm"), *selected("aten/t", kind="view")]
        compute, every = scores.rows(chosen, [result("aten/mm", timing(2.0)), result("aten/t", library=None)])
        assert (compute.kinds, compute.problems, compute.correct) == ("compute", 1, 1)
        assert (every.kinds, every.problems, every.correct) == ("all kinds", 2, 2)
        assert compute.fast_at(1.0) == scores.FastP(1.0, 1.0, 1.0)
        assert every.fast_at(1.0) == scores.FastP(1.0, 0.5, 0.5)

    def test_sources_stay_apart(self) -> None:
        table = scores.rows(selected("aten/mm", "cublas/a"), [result("cublas/a", timing(2.0))])
        assert [(row.source, row.correct) for row in table] == [("aten", 0), ("cublas", 1)]

    def test_samples_are_averaged(self) -> None:
        samples = [
            dataclasses.replace(result("aten/mm", timing(2.0)), sample=0),
            dataclasses.replace(result("aten/mm", timing(0.5)), sample=1),
            dataclasses.replace(result("aten/mm", outcome=Outcome.TIMEOUT), sample=2),
            dataclasses.replace(result("aten/mm", outcome=Outcome.NO_CODE), sample=3),
        ]
        (row,) = scores.rows(selected("aten/mm", "aten/add"), samples)
        assert (row.correct, row.submitted) == (0.5, 1)
        assert row.fast_at(1.0) == scores.FastP(1.0, 1 / 8, 1 / 8)
        assert ratios(row.speedup)[0] == pytest.approx(1.0)

    def test_later_line_replaces_an_earlier_one(self) -> None:
        lines = [result("aten/mm", outcome=Outcome.HARNESS_ERROR), result("aten/mm", timing(2.0))]
        (row,) = scores.rows(selected("aten/mm"), lines)
        assert (row.correct, row.outcomes) == (1, {"passed": 1})

    def test_interpreter_leaves_no_speed_columns(self) -> None:
        (row,) = scores.rows(selected("aten/mm"), [result("aten/mm", timing(0.001), interpreted=True)])
        assert (row.share_correct(), row.speedup, row.fast_at(1.0)) == (1.0, None, scores.FastP(1.0, None, None))

    def test_required_overloads_of_every_selected_problem_are_counted(self) -> None:
        chosen = [
            Selected("aten/add", "compute", overloads=("Tensor", "Scalar")),
            Selected("aten/mm", "compute", overloads=("",)),
            Selected("aten/sum", "compute", overloads=("", "dim")),
        ]
        optional_too = {"Tensor": "passed", "Scalar": "wrong value", "out": "passed"}
        found = [result("aten/add", overloads=optional_too), result("aten/mm", overloads={"": "passed"})]
        (row,) = scores.rows(chosen, found)
        assert (row.overloads_correct, row.overloads) == (2, 5)

    def test_cases_without_a_time_are_told(self) -> None:
        (row,) = scores.rows(selected("aten/mm"), [result("aten/mm", timing(2.0), None)])
        assert row.untimed == {"aten/mm": 1}
