"""Figures in few digits, at the edges where a unit or a digit changes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgbench.core import figures


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "unknown"), (0, "0"), (812, "812"), (999, "999"), (999.6, "1.0 k"), (1000, "1.0 k"), (9_940, "9.9 k"),
        (9_960, "10 k"), (24_100, "24 k"), (999_499, "999 k"), (999_600, "1.0 M"), (1_234_567, "1.2 M"), (3e9, "3.0 G"),
    ],
)  # fmt: skip
def test_tokens(count: float | None, text: str) -> None:
    assert figures.tokens(count) == text


@pytest.mark.parametrize(
    ("count", "text"), [(400, "0 kB"), (13_900, "14 kB"), (99_999, "100 kB"), (6_330_605, "6.3 MB")]
)
def test_size(count: int, text: str) -> None:
    assert figures.size(count) == text


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (None, "unknown"), (0.0, "$0.00"), (3.214, "$3.21"), (1234.5, "$1,234.50"), (0.1, "$0.10"), (0.0999, "$0.10"),
        (0.064, "$0.064"), (0.0641, "$0.064"), (0.01, "$0.010"), (0.00012, "$0.00012"), (1e-9, "$0.0000000010"),
    ],
)  # fmt: skip
def test_dollars(usd: float | None, text: str) -> None:
    assert figures.dollars(usd) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"), (8.06, "8.1 s"), (38.4, "38 s"), (119.9, "120 s"), (120, "2.0 min"), (1860, "31 min"),
        (7199, "120 min"), (7200, "2.0 h"), (90_000, "25 h"),
    ],
)  # fmt: skip
def test_duration(seconds: float, text: str) -> None:
    assert figures.duration(seconds) == text


@settings(database=None, deadline=None)
@given(st.floats(1e-12, 1e12))
def test_every_dollar_is_within_a_twentieth(usd: float) -> None:
    text = figures.dollars(usd)
    assert "e" not in text
    assert float(text.removeprefix("$").replace(",", "")) == pytest.approx(usd, rel=0.051)
