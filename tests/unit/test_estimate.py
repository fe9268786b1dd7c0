"""What the clock makes of windows' times, with windows that were written down instead of run."""

from __future__ import annotations

import math

import pytest

from kgbench.core.types import Window
from kgbench.harness.clock.estimate import (
    LEAST_US,
    MAX_PAIRS,
    MIN_PAIRS,
    Pair,
    Unmeasurable,
    disagree,
    enough,
    estimate,
    is_followed,
    is_slow,
    log_ratios,
    overhead,
    per_call,
    single_calls,
)

OVERHEAD_US = 20.0
CALLS = 10


def window(side: str, call_us: float, securing_us: float = 5.0, calls: int = CALLS) -> Window:
    done_us = OVERHEAD_US + calls * call_us
    return Window(side, "window", calls, done_us, done_us + securing_us)


def pairs(library_us: float, candidate_us: float, securing_us: float = 5.0, count: int = 6) -> list[Pair]:
    pair = (window("library", library_us), window("candidate", candidate_us, securing_us))
    return [pair] * count


def test_a_slow_kernel_is_scored_slow_and_a_fast_one_fast() -> None:
    for candidate_us, ratio in ((400.0, 0.25), (100.0, 1.0), (50.0, 2.0)):
        found = estimate(pairs(100.0, candidate_us), None, OVERHEAD_US)
        assert (found.library_us, found.candidate_us) == pytest.approx((100.0, candidate_us))
        assert [math.exp(each) for each in found.log_ratios] == pytest.approx([ratio] * 6)
        assert (found.scored_by, found.note) == ("window", "")


def test_one_disturbed_window_moves_nothing() -> None:
    disturbed = [*pairs(100.0, 100.0), (window("library", 100.0), window("candidate", 9000.0))]
    assert estimate(disturbed, None, OVERHEAD_US).candidate_us == pytest.approx(100.0)


def test_single_calls_are_scored_where_the_candidates_stand_out() -> None:
    windows = pairs(100.0, 10.0)
    times = {"library": [130.0, 110.0], "candidate": [150.0, 140.0]}
    singles = single_calls(times, windows, OVERHEAD_US, "cuda")
    assert singles == (110.0, 140.0)
    found = estimate(windows, singles, OVERHEAD_US)
    assert (found.scored_by, found.library_us, found.candidate_us) == ("single", 110.0, 140.0)
    assert math.exp(found.log_ratios[0]) == pytest.approx(110.0 / 140.0)
    assert single_calls(times, windows, OVERHEAD_US, "cpu") is None, "a CPU's single calls differ by that much"
    assert single_calls({**times, "candidate": [25.0]}, windows, OVERHEAD_US, "cuda") is None
    alone = [(window("library", 100.0, calls=1), window("candidate", 10.0, calls=1))] * 6
    assert single_calls(times, alone, OVERHEAD_US, "cuda") is None, "its windows are single calls as well"


@pytest.mark.parametrize(("library_us", "candidate_us"), [(0.0, 100.0), (100.0, 0.0), (100.0, -1.0)])
def test_what_takes_no_longer_than_nothing_has_no_time(library_us: float, candidate_us: float) -> None:
    with pytest.raises(Unmeasurable, match="windows of 10 calls took no longer than one without calls"):
        estimate(pairs(library_us, candidate_us), None, OVERHEAD_US)
    assert per_call(window("candidate", -1.0), OVERHEAD_US) == LEAST_US
    assert math.isfinite(log_ratios(pairs(library_us, candidate_us), OVERHEAD_US)[0])


def test_timing_ends_with_a_narrow_interval_or_when_it_is_late_after_whole_pairs_of_pairs() -> None:
    def ends(
        count: int, late: bool = False, spread: float = 0.0, noise: float = 0.0, candidate_us: float = 100.0
    ) -> bool:
        times = [candidate_us * (1.0 + spread * number) for number in range(count)]
        windows = [(window("library", 100.0), window("candidate", each)) for each in times]
        return enough(windows, OVERHEAD_US, noise, late)

    assert [count for count in range(MAX_PAIRS + 1) if ends(count)] == [*range(MIN_PAIRS, MAX_PAIRS + 1, 2)]
    assert [count for count in range(MAX_PAIRS + 1) if ends(count, spread=0.1)] == [MAX_PAIRS]
    assert [count for count in range(6) if ends(count, late=True)] == [2, 4]
    # The half-width of six pairs with a step of 0.4 % is 1 %: too much by itself, little beside a noise of 2.1 %.
    assert not ends(MIN_PAIRS, spread=0.004)
    assert not ends(MIN_PAIRS, spread=0.004, noise=0.019)
    assert ends(MIN_PAIRS, spread=0.004, noise=0.021)
    # A twentieth of the way from 1: the logarithm of 1.25 is 0.22, and half the interval 0.01.
    assert ends(MIN_PAIRS, spread=0.004, candidate_us=80.0)
    assert ends(MIN_PAIRS, spread=0.004, candidate_us=128.0)
    assert not ends(MIN_PAIRS, spread=0.004, candidate_us=90.0)


def test_a_pair_that_is_said_to_follow_does() -> None:
    windows = [(window("library", 100.0), window("candidate", 100.0))] * MAX_PAIRS
    for count in range(1, MAX_PAIRS + 1):
        assert is_followed(count) <= (not enough(windows[:count], OVERHEAD_US, 0.0, late=False)), count
    assert is_followed(1)
    assert not is_followed(MIN_PAIRS)


def test_a_candidate_is_slow_above_twice_the_librarys_time() -> None:
    assert is_slow(pairs(100.0, 230.0))
    assert not is_slow(pairs(100.0, 190.0))


@pytest.mark.parametrize(
    ("times_us", "queued", "least_us"),
    [
        ((148.2, 149.0, 150.1), True, 148.2),
        ((148.2, 8.7, 149.9, 150.0), True, 148.2),
        ((148.2, 8.7, 149.9, 150.0), False, 8.7),
        ((9.0, 8.7, 148.0), True, 8.7),
    ],
)
def test_a_window_without_calls_that_began_at_once_is_no_overhead(
    times_us: tuple[float, ...], queued: bool, least_us: float
) -> None:
    """Its worker's context was the device's already: the other windows begin with a switch, which is taken off."""
    windows = [Window("library", "overhead", 1, us, us + 5.0) for us in times_us]
    assert overhead(windows, queued) == least_us
    assert disagree(windows) == (max(times_us) > 2 * min(times_us))
