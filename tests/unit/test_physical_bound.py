"""The physical bound: what is impossible is said with its numbers, and what is honest is never under it."""

from typing import Any

import pytest

from kgbench.core.details.sentences import words_of
from kgbench.core.types import Timing, Window
from kgbench.harness.clock.physical_bound import Work, impossible

PEAKS = {
    "gb_per_s": 4000, "read_gb_per_s": 4200, "write_gb_per_s": 3600, "l2_bytes": 50_000_000,
    "gflop_per_s": {"float32": 50_000, "float64": 60_000, "float16": 700_000, "bfloat16": 720_000},
}  # fmt: skip


def timed(candidate_us: float, library_us: float, calls: int = 100, scored_by: str = "window") -> Timing:
    windows = (Window("candidate", "window", calls, 0.0, 0.0), Window("candidate", "single", 1, 0.0, 0.0))
    return Timing(
        library_us, candidate_us, library_us / candidate_us, 0.0, 1e9, scored_by, False, True, windows=windows
    )


def test_the_numbers_are_said() -> None:
    found = impossible(Work(64e6, 0.0, ("float32",)), timed(4.1, 20.0), PEAKS)
    assert found is not None
    words = "4.1 µs for at least 63.5 MB: 15.5 TB/s, and the device moves 4.2 TB/s at most"
    assert f"faster than is possible: {words}" in words_of(found)


@pytest.mark.parametrize(
    ("work", "least_us"),
    [
        (Work(420e6, 0.0, ("float32",)), 85.0),  # 100 µs less 15 %
        (Work(420e6, 0.0, ("float32",), by_index=True), 65.0),
        (Work(0.0, 72e9, ("float16",)), 50.0),  # 100 µs, and half the operations may be saved
        (Work(0.0, 24e9, ("float32",)), 50.0),  # three products of 16 bits
        (Work(0.0, 9e9, ("float64",)), 50.0),
        (Work(0.0, 24e9, ("complex64",)), 50.0),
        (Work(0.0, 288e9, ("int8", "float32")), 50.0),  # the fastest dtype of the call counts
    ],
)
def test_just_above_the_floor_is_believed(work: Work, least_us: float) -> None:
    peaks = {**PEAKS, "l2_bytes": 0}
    assert not impossible(work, timed(least_us, 1e4), peaks)
    assert impossible(work, timed(0.98 * least_us - 0.1, 1e4), peaks)


def test_what_the_library_reaches_is_possible() -> None:
    work = Work(420e6, 0.0, ("float32",))
    assert impossible(work, timed(50.0, 100.0), PEAKS)
    assert not impossible(work, timed(50.0, 55.0), PEAKS)


def test_a_window_that_fits_the_cache_has_no_floor() -> None:
    assert not impossible(Work(0.4e6, 0.0, ("float32",)), timed(0.001, 10.0, calls=100), PEAKS)
    assert not impossible(Work(45e6, 0.0, ("float32",)), timed(1.0, 10.0, calls=1), PEAKS)
    single = timed(0.5, 10.0, calls=100, scored_by="single")
    assert not impossible(Work(45e6, 0.0, ("float32",)), single, PEAKS)


def test_what_is_not_known_of_a_dtype_forbids_nothing() -> None:
    nothing: dict[str, Any] = {**PEAKS, "gflop_per_s": {}}
    assert not impossible(Work(0.0, 1e15, ("int64",)), timed(1.0, 1e4), PEAKS)
    assert not impossible(Work(0.0, 1e15, ("float16",)), timed(1.0, 1e12), nothing)
