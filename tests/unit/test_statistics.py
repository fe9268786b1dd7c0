"""The interval of paired log ratios: hand-computed, robust to a disturbed window, never narrower than the null test."""

from __future__ import annotations

import math

import pytest

from kgbench.harness.clock.statistics import LAUNCH_BOUND_US, half_width, interval, null_noise


def test_equal_ratios_have_the_null_tests_interval() -> None:
    ratio, low, high = interval([math.log(2.0)] * 8, noise=0.01)
    assert ratio == pytest.approx(2.0)
    assert (low, high) == pytest.approx((2.0 / 1.01, 2.0 * 1.01))


@pytest.mark.parametrize(
    ("count", "rank"),
    [(2, 1), (5, 1), (6, 1), (8, 1), (9, 2), (12, 3), (24, 7)],
)
def test_the_interval_is_the_sign_tests(count: int, rank: int) -> None:
    """Ranks from a table of the binomial distribution at one half."""
    logs = [math.log(1 + i / 1000) for i in range(1, count + 1)]
    _, low, high = interval(logs, noise=0.0)
    assert low == pytest.approx(1 + rank / 1000)
    assert high == pytest.approx(1 + (count + 1 - rank) / 1000)


def test_one_disturbed_window_moves_nothing() -> None:
    logs = [0.0] * 11 + [math.log(5.0)]
    assert interval(logs, noise=0.002) == pytest.approx((1.0, 1 / 1.002, 1.002))


def test_one_pair_alone_has_no_width_of_its_own() -> None:
    assert half_width([0.1]) == math.inf


@pytest.mark.parametrize("kind", ["cuda", "cpu"])
def test_shorter_work_is_noisier(kind: str) -> None:
    noises = [null_noise(kind, time_us) for time_us in (1.0, LAUNCH_BOUND_US, 30.0, 200.0, 1e6)]
    assert noises == sorted(noises, reverse=True)
