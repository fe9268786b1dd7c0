"""Several samples and rounds of a problem: pass@k and fast_p@k against counting, the best round, what is missing."""

from __future__ import annotations

import dataclasses
import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.scores import rows as scores
from kgbench.scores.rows import FastP
from kgbench.scores.samples import Selected, after_round, by_problem, ks, latest, newest, pass_at_k
from kgbench.scores.score import Basis
from kgbench.scores.table import fast
from tests.unit.made_results import NO_LIBRARY, result, timing


def sampled(one: Result, sample: int, round: int = 0) -> Result:
    return dataclasses.replace(one, sample=sample, round=round)


def share_fast(selected: list[Selected], found: list[Result], p: float) -> float | None:
    """fast_p of these problems; None where the device's speed means nothing."""
    basis = Basis.of(selected, by_problem(latest(found)))
    return fast(p).value(basis) if basis.scored else None


def wrong(problem: str = "aten/mm", outcome: Outcome = Outcome.WRONG_VALUE) -> Result:
    return result(problem, outcome=outcome)


class TestPassAtK:
    @pytest.mark.parametrize(
        ("n", "c", "k", "chance"),
        [
            (1, 1, 1, 1.0),
            (10, 3, 1, 0.3),
            (4, 1, 2, 0.5),  # 1 - C(3, 2) / C(4, 2) = 1 - 3/6
            (5, 2, 2, 0.7),  # 1 - C(3, 2) / C(5, 2) = 1 - 3/10
            (10, 3, 5, 11 / 12),  # 1 - C(7, 5) / C(10, 5) = 1 - 21/252
            (5, 4, 2, 1.0),
            (100, 0, 50, 0.0),
        ],
    )
    def test_by_hand(self, n: int, c: int, k: int, chance: float) -> None:
        assert pass_at_k(n, c, k) == pytest.approx(chance)

    @settings(database=None, deadline=None)
    @given(st.integers(1, 7).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
    def test_is_the_share_of_draws_that_hold_a_right_one(self, drawn: tuple[int, int, int]) -> None:
        n, c, k = drawn
        draws = list(itertools.combinations(range(n), k))
        held = sum(any(sample < c for sample in draw) for draw in draws)
        assert pass_at_k(n, c, k) == pytest.approx(held / len(draws))

    @settings(database=None, deadline=None)
    @given(st.integers(2, 2000).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n - 1))))
    def test_grows_with_k_and_stays_a_share(self, drawn: tuple[int, int, int]) -> None:
        n, c, k = drawn
        one, more = pass_at_k(n, c, k), pass_at_k(n, c, k + 1)
        assert 0 <= one <= more <= 1
        assert pass_at_k(n, c, 1) == pytest.approx(c / n)
        assert pass_at_k(n, c, n) == (c > 0)

    @pytest.mark.parametrize(
        ("samples", "wanted"),
        [
            (1, ()),
            (2, (1, 2)),
            (3, (1, 2, 3)),
            (5, (1, 2, 5)),
            (10, (1, 2, 5, 10)),
            (64, (1, 2, 5, 10, 20, 50, 64)),
            (100, (1, 2, 5, 10, 20, 50, 100)),
        ],
    )
    def test_which_k(self, samples: int, wanted: tuple[int, ...]) -> None:
        assert ks(samples) == wanted


class TestRowsOfSamples:
    def test_by_hand(self) -> None:
        """Of mm, four samples: three right, one of them fast. Of add none is correct."""
        found = [
            sampled(result("aten/mm", timing(2.0)), 0),
            sampled(result("aten/mm", timing(0.5)), 1),
            sampled(result("aten/mm", timing(0.6)), 2),
            sampled(wrong(), 3),
            *(sampled(wrong("aten/add"), number) for number in range(4)),
        ]
        chosen = [Selected(name, "compute", samples=4) for name in ("aten/mm", "aten/add")]
        (row,) = scores.rows(chosen, found, (0.55, 1.0))
        assert (row.samples, row.missing_samples, row.correct) == (4, 0, 0.75)
        assert [(each.k, each.correct) for each in row.at_k] == [(1, 3 / 8), (2, 1 / 2), (4, 1 / 2)]
        fast_1 = [each.fast[1] for each in row.at_k]
        assert fast_1 == [FastP(1.0, share, share) for share in (1 / 8, 1 / 4, 1 / 2)]
        # Two samples are faster than 0.55 by either measure: 1 - C(2, 2) / C(4, 2).
        assert row.at_k[1].fast[0].interval == pytest.approx((5 / 6) / 2)
        assert row.fast_at(1.0) == row.at_k[0].fast[1]
        assert row.share_correct() == row.at_k[0].correct

    def test_a_sample_that_was_asked_for_and_is_missing_is_not_right(self) -> None:
        chosen = [
            Selected("aten/mm", "compute", samples=4, overloads=("",)),
            Selected("aten/add", "compute", samples=4),
        ]
        found = [sampled(result("aten/mm", timing(2.0), overloads={"": "passed"}), number) for number in (0, 3)]
        (row,) = scores.rows(chosen, found)
        assert (row.samples, row.missing_samples, row.not_evaluated) == (4, 6, 1)
        assert (row.correct, row.overloads_correct) == (0.5, 0.5)
        assert row.fast_at(1.0) == FastP(1.0, 1 / 4, 1 / 4)
        assert [each.correct for each in row.at_k] == pytest.approx([1 / 4, 5 / 12, 1 / 2])
        assert share_fast(chosen, found, 1.0) == 1 / 4

    def test_k_goes_to_the_smallest_number_of_samples(self) -> None:
        found = [sampled(wrong("aten/mm"), number) for number in range(5)]
        found += [sampled(result("aten/add"), number) for number in range(2)]
        (row,) = scores.rows([Selected("aten/mm", "compute"), Selected("aten/add", "compute")], found)
        assert (row.samples, [each.k for each in row.at_k]) == (2, [1, 2])

    def test_one_sample_has_no_k(self) -> None:
        (row,) = scores.rows([Selected("aten/mm", "compute")], [result("aten/mm", timing(2.0))])
        assert (row.samples, row.missing_samples, row.at_k, row.cost) == (1, 0, (), None)

    def test_interpreted_samples_have_no_speed(self) -> None:
        found = [sampled(result("aten/mm", timing(2.0), interpreted=True), number) for number in range(2)]
        (row,) = scores.rows([Selected("aten/mm", "compute")], found, (1.0,))
        assert [each.fast for each in row.at_k] == [(FastP(1.0, None, None),)] * 2
        assert [each.correct for each in row.at_k] == [1.0, 1.0]

    def test_many_samples_are_scored_in_time(self) -> None:
        made = [result("aten/mm", timing(2.0)), wrong()]
        found = [
            dataclasses.replace(made[(number + place) % 2], problem=f"aten/p{place}", sample=number)
            for place in range(100)
            for number in range(100)
        ]
        (row,) = scores.rows([Selected(f"aten/p{place}", "compute", samples=100) for place in range(100)], found)
        assert row.at_k[0].correct == pytest.approx(0.5)
        assert row.at_k[-1].correct == 1.0


class TestRounds:
    @pytest.mark.parametrize(
        ("rounds", "best"),
        [
            # A correct one beats what is not, wherever it stands.
            ([wrong(), result("aten/mm"), wrong()], 1),
            # Of correct ones the higher lower end, not the higher point,
            ([result("aten/mm", timing(2.0)), result("aten/mm", timing(2.1, width=1.5))], 0),
            ([result("aten/mm", timing(0.5)), result("aten/mm", timing(0.9)), result("aten/mm", timing(0.7))], 1),
            # else the earlier.
            ([wrong(), result("aten/mm", timing(0.5)), result("aten/mm", timing(0.5))], 1),
            # One with a time beats one without.
            ([result("aten/mm"), result("aten/mm", timing(0.01))], 1),
            # Against the fallback, where there is no library.
            ([result("aten/mm", timing(s, against="fallback"), library=NO_LIBRARY) for s in (0.5, 0.8)], 1),
            # Speed in the interpreter means nothing.
            ([result("aten/mm", timing(s), interpreted=True) for s in (0.5, 0.8)], 0),
            # Of those that are not correct the last.
            ([wrong(), wrong(outcome=Outcome.NO_CODE)], 1),
            ([wrong(outcome=Outcome.CRASHED), wrong(), wrong(outcome=Outcome.TIMEOUT)], 2),
        ],
    )
    def test_best_one_is_the_samples_answer(self, rounds: list[Result], best: int) -> None:
        lines = [sampled(one, 0, number) for number, one in enumerate(rounds)]
        for order in itertools.permutations(lines):
            assert latest(order) == [lines[best]]

    def test_later_line_of_the_same_round_replaces_the_earlier(self) -> None:
        first, again, second = sampled(wrong(), 0), sampled(result("aten/mm"), 0), sampled(wrong(), 0, 1)
        assert latest([first, second, again]) == [again]
        assert newest([first, second, again]) == [again, second]

    def test_samples_stay_apart(self) -> None:
        lines = [sampled(wrong(), 0), sampled(result("aten/mm"), 1), sampled(wrong(), 0, 1), sampled(wrong(), 1, 1)]
        assert [(one.sample, one.round) for one in latest(lines)] == [(0, 1), (1, 0)]

    def test_after_a_round_the_later_ones_are_not_there(self) -> None:
        lines = [
            sampled(wrong(), 0, 0),
            sampled(result("aten/mm", timing(0.5)), 0, 1),
            sampled(result("aten/mm", timing(2.0)), 0, 2),
        ]
        chosen = [Selected("aten/mm", "compute")]
        shares = [
            (share_fast(chosen, after, 0), share_fast(chosen, after, 1.0))
            for after in (after_round(lines, number) for number in range(4))
        ]
        assert shares == [(0, 0), (1, 0), (1, 1), (1, 1)]

    @settings(database=None, deadline=None)
    @given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 50)), min_size=1, max_size=6), st.randoms())
    def test_more_rounds_are_never_worse(self, rounds: list[tuple[bool, float]], mixed: random.Random) -> None:
        lines = [
            sampled(result("aten/mm", timing(ratio)) if right else wrong(), 0, number)
            for number, (right, ratio) in enumerate(rounds)
        ]
        mixed.shuffle(lines)
        chosen = [Selected("aten/mm", "compute")]
        for p in (0, 0.5, 1.0):
            shares = [share_fast(chosen, after_round(lines, number), p) for number in range(len(lines))]
            assert shares == sorted(shares, key=lambda share: -math.inf if share is None else share)
