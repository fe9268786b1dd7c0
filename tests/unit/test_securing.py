"""Work behind the mark: what is added to a candidate's time, and that noise rarely is."""

from __future__ import annotations

import math
import random

import pytest

from kgbench.core.types import Timing, Window
from kgbench.harness.clock.estimate import Pair
from kgbench.harness.clock.securing import Late, charged, count_together, late_of

CALLS = 10
OVERHEAD_US = 150.0
WINDOW_US = 2000.0


def window(side: str, securing_us: float) -> Window:
    return Window(side, "window", CALLS, OVERHEAD_US + WINDOW_US, OVERHEAD_US + WINDOW_US + securing_us)


def late(library_us: list[float], candidate_us: list[float]) -> Late:
    """Of windows whose outputs took so long to secure."""
    each = zip(library_us, candidate_us, strict=True)
    return late_of([(window("library", one), window("candidate", other)) for one, other in each], OVERHEAD_US)


def timing(candidate_us: float = WINDOW_US / CALLS, scored_by: str = "window") -> Timing:
    return Timing(200.0, candidate_us, 200.0 / candidate_us, 0.9, 1.1, scored_by, False, True)


def test_the_excess_and_its_error_are_of_a_call() -> None:
    own = [300.0, 310.0, 290.0, 305.0, 295.0, 300.5]
    found = late(own, [each + 50.0 for each in own])
    assert (found.excess_us, found.candidate_us, found.pairs) == (pytest.approx(5.0), pytest.approx(200.0), 6)
    mean = sum(own) / 6
    deviation = math.sqrt(sum((each - mean) ** 2 for each in own) / 5)
    assert found.error_us == pytest.approx(math.sqrt(math.pi / 2) * deviation * math.sqrt(2 / 6) / CALLS)


def test_outputs_that_come_late_are_added() -> None:
    own = [300.0, 302.0, 298.0, 301.0, 299.0, 300.5]
    (found,) = charged([(timing(), late(own, [each + 1000.0 for each in own]))])
    assert (found.scored_by, found.candidate_us) == ("secured", pytest.approx(300.0))
    assert (found.ratio, found.low, found.high) == pytest.approx((2 / 3, 0.6, 1.1 * 2 / 3))
    assert "100.0 µs per call later" in found.note


def test_a_candidates_own_scatter_excuses_nothing() -> None:
    own = [300.0, 300.2, 299.8, 300.1, 299.9, 300.3]
    (found,) = charged([(timing(), late(own, [310.0, 350.0, 330.0, 320.0, 345.0, 315.0]))])
    assert found.scored_by == "secured"


def test_what_the_librarys_own_outputs_scatter_by_is_no_evidence() -> None:
    own = [300.0, 340.0, 290.0, 330.0, 310.0, 350.0]
    (found,) = charged([(timing(), late(own, [each + 30.0 for each in own]))])
    assert found == timing()


def test_a_small_share_that_is_hidden_in_every_case_counts_although_in_none_by_itself() -> None:
    own = [300.0, 340.0, 290.0, 330.0, 310.0, 350.0]
    each = late(own, [value + 30.0 for value in own])
    assert not each.counts
    assert not count_together([each] * 2)
    assert count_together([each] * 8)
    found = charged([(timing(), each)] * 8)
    assert [case.candidate_us for case in found] == pytest.approx([203.0] * 8)
    early = late(own, [value - 40.0 for value in own])
    assert charged([(timing(), each)] * 8 + [(timing(), early)])[-1] == timing(), "what is early is no credit"


def test_a_single_call_that_takes_longer_is_what_is_scored() -> None:
    own = [300.0, 302.0, 298.0, 301.0, 299.0, 300.5]
    behind = late(own, [each + 1000.0 for each in own])
    slower, faster = timing(310.0, "single"), timing(250.0, "single")
    found = charged([(slower, behind), (faster, behind)])
    assert found[0] == slower
    assert (found[1].scored_by, found[1].candidate_us) == ("secured", pytest.approx(300.0))
    assert found[1].ratio == pytest.approx(faster.ratio * 250 / 300)


def test_stored_windows_of_the_library_say_nothing_new_when_they_come_again() -> None:
    own = [300.0, 340.0]
    fresh, again = late([*own, 310.0, 350.0], [320.0] * 4), late(own * 2, [320.0] * 4)
    assert (fresh.pairs, again.pairs) == (4, 2)
    assert again.error_us > fresh.error_us


def test_few_windows_that_agree_by_chance_do_not_decide_for_all_cases() -> None:
    noisy = late([300.0, 340.0, 290.0, 330.0, 310.0, 350.0], [320.0] * 6)
    agreed = late([300.0, 300.01], [300.5, 300.51])
    assert not agreed.counts
    assert not count_together([noisy, noisy, agreed])


def test_of_honest_candidates_noise_charges_few_and_a_tenth_that_is_hidden_is_found() -> None:
    """Securing scatters by 1.5 % of a window, with a heavy tail to one side, as on an H200; six pairs, five cases."""
    draw = random.Random(7)

    def securing() -> float:
        return 300.0 + draw.gauss(0.0, 30.0) + (draw.expovariate(1 / 60.0) if draw.random() < 0.2 else 0.0)

    def candidate(hidden_us: float) -> list[tuple[Timing, Late]]:
        lates = [
            late([securing() for _ in range(6)], [securing() + hidden_us for _ in range(6)])
            for _ in range(5)
        ]  # fmt: skip
        return [(timing(), each) for each in lates]

    def share_charged(hidden_us: float) -> float:
        cases = [case for _ in range(200) for case in charged(candidate(hidden_us))]
        return sum(case.scored_by == "secured" for case in cases) / len(cases)

    assert share_charged(0.0) < 0.04
    assert share_charged(0.1 * WINDOW_US) > 0.95


def test_pairs_are_what_the_clock_gives() -> None:
    pair: Pair = (window("library", 5.0), window("candidate", 5.0))
    assert late_of([pair, pair], OVERHEAD_US).excess_us == 0.0
