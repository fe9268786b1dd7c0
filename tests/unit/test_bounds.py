"""``--fail-under``: what a bound is read as, and which ones a run breaks."""

from __future__ import annotations

import pytest

from kgbench.core.errors import UsageError
from kgbench.scores.bounds import Bound, broken, parse_bounds
from kgbench.scores.samples import Selected
from tests.unit.made_results import result, timing

SELECTED = [Selected("aten/mm", "compute"), Selected("aten/t", "view"), Selected("cublas/dot", "compute")]
RESULTS = [result("aten/mm", timing(2.0)), result("aten/t"), result("cublas/dot", timing(0.7))]


def lines(text: str) -> list[str]:
    return list(broken(parse_bounds(text), SELECTED, RESULTS))


def test_bounds_are_read_with_source_p_and_share() -> None:
    assert parse_bounds("fast_0=1.0, cublas:fast_1.5=.5,right=0,correct=0.5,") == (
        Bound("fast_0=1.0", None, 0.0, 1.0),
        Bound("cublas:fast_1.5=.5", "cublas", 1.5, 0.5),
        Bound("right=0", None, 0.0, 0.0),
        Bound("correct=0.5", None, 0.0, 0.5),
    )


@pytest.mark.parametrize("text", ["fast_1", "fast_1=2", "fast_=1", "1=1", "a:b:fast_1=1", "fast_1=1e-1", "fast_-1=0"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"for example --fail-under 'fast_0=1\.0,cublas:fast_1=0\.5'"):
        parse_bounds(text)


def test_speed_is_asked_of_kind_compute_and_right_of_every_kind() -> None:
    assert lines("fast_0=1,aten:fast_1=1,fast_1=0.5,cublas:fast_0.5=1") == []
    assert lines("fast_1=0.51") == ["--fail-under 'fast_1=0.51': it is 0.5 of 2 problems, below 0.51"]
    assert lines("cublas:fast_1=1") == ["--fail-under 'cublas:fast_1=1': it is 0 of 1 problem, below 1"]


def test_problem_without_a_result_is_not_right() -> None:
    found = list(broken(parse_bounds("right=1"), SELECTED, RESULTS[:2]))
    assert found == ["--fail-under 'right=1': it is 0.6667 of 3 problems, below 1"]


def test_share_of_thirds_meets_its_bound() -> None:
    selected = [Selected(f"aten/{n}", "compute") for n in range(3)]
    assert list(broken(parse_bounds("right=0.3333333333"), selected, [result("aten/0")])) == []


def test_bound_on_speed_where_nothing_has_one_does_not_hold() -> None:
    (line,) = broken(parse_bounds("fast_1=0"), SELECTED[1:2], RESULTS)
    assert "no problem of kind compute is selected" in line
