"""Tokens, seconds and dollars against sums by hand; what is not known is not made up."""

from __future__ import annotations

import dataclasses

import pytest

from kgbench.core.outcomes import Outcome
from kgbench.core.types import Generation, Result, result_from_json
from kgbench.scores import rows as scores
from kgbench.scores.costs import Cost, cost_of, unconfined
from kgbench.scores.samples import Selected
from tests.unit.made_results import result

FIRST = Generation("m-1", 200, 800, 0, 500, 10.0, 0.02)
SECOND = Generation("m-1", 100, 0, 900, 1500, 30.0, 0.04)


def made(by: Generation, problem: str = "aten/mm", sample: int = 0, round: int = 0, *, right: bool = True) -> Result:
    one = result(problem, outcome=Outcome.PASSED if right else Outcome.WRONG_VALUE)
    return dataclasses.replace(one, sample=sample, round=round, generation=by)


FOUND = [made(FIRST), made(SECOND, sample=1, right=False), made(FIRST, "aten/add", right=False)]


def test_sums_by_hand() -> None:
    assert cost_of(FOUND) == Cost(
        requests=3, samples=3, problems=2, solved=1, input_tokens=3000, cache_read_tokens=1600, cache_write_tokens=900,
        output_tokens=2500, unknown_tokens=0, seconds=50.0, usd=pytest.approx(0.08), known_usd=pytest.approx(0.08),
        unknown_prices=0,
    )  # fmt: skip


def test_means_are_per_sample_problem_and_solved_problem() -> None:
    cost = cost_of(FOUND)
    assert cost is not None
    per = cost.to_json()["per"]
    assert per["sample"]["output_tokens"] == pytest.approx(2500 / 3)
    assert per["problem"] == {
        "input_tokens": 1500, "output_tokens": 1250, "seconds": 25, "usd": pytest.approx(0.04),
    }  # fmt: skip
    assert per["solved_problem"]["usd"] == pytest.approx(0.08)


def test_nothing_solved_has_no_price_per_solved_problem() -> None:
    cost = cost_of([made(FIRST, right=False)])
    assert cost is not None
    assert set(cost.to_json()["per"]) == {"sample", "problem"}


def test_one_unknown_price_makes_the_sum_unknown() -> None:
    cost = cost_of([*FOUND, made(dataclasses.replace(FIRST, usd=None), "aten/t")])
    assert cost is not None
    assert (cost.usd, cost.known_usd, cost.unknown_prices) == (None, pytest.approx(0.08), 1)
    assert cost.to_json()["per"]["problem"]["usd"] is None


def test_free_is_not_unknown() -> None:
    cost = cost_of([made(dataclasses.replace(FIRST, usd=0.0))])
    assert cost is not None
    assert (cost.usd, cost.unknown_prices) == (0.0, 0)


@pytest.mark.parametrize(
    ("silent", "known"),
    [
        ({"input_tokens": None}, (None, 1600, 0, 1000, 1)),
        ({"output_tokens": None}, (2000, 1600, 0, None, 1)),
        # A provider that says nothing of a cache has none.
        ({"cache_read_tokens": None, "cache_write_tokens": None}, (1200, 800, 0, 1000, 0)),
    ],
)
def test_what_a_provider_does_not_say(silent: dict[str, None], known: tuple[int | None, ...]) -> None:
    cost = cost_of([made(FIRST), made(dataclasses.replace(FIRST, **silent), sample=1)])  # type: ignore[arg-type]
    assert cost is not None
    kinds = (cost.input_tokens, cost.cache_read_tokens, cost.cache_write_tokens, cost.output_tokens)
    assert (*kinds, cost.unknown_tokens) == known


def test_no_model_was_asked() -> None:
    assert cost_of([result("aten/mm")]) is None


def test_a_row_counts_every_round_once_and_scores_the_best() -> None:
    lines = [
        made(FIRST, round=0, right=False),
        made(SECOND, round=1),
        made(SECOND, round=1),  # judged again
        made(FIRST, "cublas/a"),
    ]
    (row,) = scores.rows([Selected("aten/mm", "compute")], lines)
    assert row.cost is not None
    assert (row.correct, row.outcomes) == (1, {"passed": 1})
    assert (row.cost.requests, row.cost.samples, row.cost.usd) == (2, 1, pytest.approx(0.06))


def test_agents_that_were_not_confined_are_counted_by_reason() -> None:
    loose = dataclasses.replace(FIRST, not_confined="mount was refused")
    confined = dataclasses.replace(FIRST, confined="agent confined: files by mounts")
    lines = [made(loose), made(loose, sample=1), made(confined, sample=2), made(FIRST, sample=3)]
    assert unconfined(lines) == {"mount was refused": 2}
    (row,) = scores.rows([Selected("aten/mm", "compute")], lines)
    assert row.unconfined == {"mount was refused": 2}


def test_a_sentence_of_an_older_run_is_read() -> None:
    words = "agent not confined: mount"
    older = dataclasses.replace(made(FIRST), generation=dataclasses.replace(FIRST, confined=words))
    data = older.to_json()
    del data["generation"]["not_confined"]
    assert unconfined([result_from_json(data)]) == {"mount": 1}
    assert unconfined([result_from_json(made(FIRST).to_json())]) == {}
