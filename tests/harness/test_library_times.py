"""Which of the library's windows stand in for new ones beside a later candidate."""

from __future__ import annotations

from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="needs torch; its CPU build is enough")

from kgbench.core.types import Timing, Window
from kgbench.harness.clock.library_times import LibraryTimes

pytestmark = pytest.mark.torch

WINDOWS = (
    Window("library", "overhead", 0, 5.0, 5.0),
    Window("library", "window", 2, 25.0, 25.0),
    Window("library", "window", 16, 165.0, 165.0),
    Window("library", "single", 1, 15.0, 15.0),
    Window("candidate", "window", 16, 165.0, 165.0),
)
TIMING = Timing(10.0, 10.0, 1.0, 0.99, 1.01, "window", False, True, library_call_us=20.0, windows=WINDOWS)


def test_the_librarys_own_windows_are_kept_without_the_probe() -> None:
    kept = LibraryTimes.from_timing(TIMING)
    assert kept is not None
    assert [(window.kind, window.calls) for window in kept.windows] == [("window", 16), ("single", 1)]
    assert kept.overhead_us == 5.0
    assert LibraryTimes.from_json(kept.to_json()) == kept


def test_beside_a_slow_candidate_none_are_kept() -> None:
    """Windows are as long as the slower side allows, so a faster one after it would be timed in single calls."""
    assert LibraryTimes.from_timing(replace(TIMING, candidate_us=19.0)) is not None
    assert LibraryTimes.from_timing(replace(TIMING, candidate_us=21.0)) is None


def test_windows_of_another_candidate_are_not_kept_again() -> None:
    assert LibraryTimes.from_timing(replace(TIMING, library_shared=True)) is None
