"""No time below what the device can move and compute: the least work of a call at the device's measured peaks.

A candidate below that did not do the work, whatever else says that it did. The bound is meant to be too low rather than
too high, since no honest kernel may lie below it:

* bytes are the least of what the problem's ``cost`` declares and of the distinct bytes that the call's tensors have;
* as much as the second-level cache holds is taken off each window, since it may still lie there when the mark comes;
* the bandwidth is the largest of copying, reading and writing, and what the library itself reached in this very case;
* arithmetic counts half, since some algorithms need fewer multiplications than the textbook's, and a dtype has the
  speed of the fastest honest way to its accuracy: float32 from three products of 16-bit numbers, float64 from eight;
* what remains is lowered by a margin, a larger one where integers among the inputs decide what is read.

Pure functions, no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kgbench.core.details.failures import PhysicalBound
from kgbench.core.types import Timing

MARGIN: Final = 0.15
"""Share by which the least time for moving bytes is lowered."""
MARGIN_BY_INDEX: Final = 0.35
"""The same share where values among the inputs decide what is read: of n rows drawn out of n, 63 % are different."""
ARITHMETIC_MARGIN: Final = 0.5
"""Share by which the least time for arithmetic is lowered: some algorithms need fewer multiplications."""
CLOCK_US: Final = 5.0
"""Error in µs of what a window costs beside its calls, at most."""
PRODUCTS: Final = {"float32": 3, "float64": 8, "complex64": 3, "complex128": 8}
"""Products of 16-bit numbers that make one of a dtype's accuracy, by dtype."""
REAL: Final = {"complex64": "float32", "complex128": "float64"}
"""Dtype of the parts of a complex number, by its dtype."""
NARROW: Final = 4.0
"""Factor by which a device may be faster on numbers of fewer than 16 bits than on 16-bit ones."""
WIDE_INTEGERS: Final = ("int16", "int32", "int64", "bool")
"""Dtypes whose arithmetic has no known rate; arguments of these dtypes bound no time."""


@dataclass(frozen=True)
class Work:
    """The least that one call must do."""

    moved: float
    """Bytes read and written."""
    flops: float
    dtypes: tuple[str, ...]
    by_index: bool = False
    """Values among the inputs decide what of the others is read."""


def impossible(work: Work, timing: Timing, peaks: Mapping[str, Any]) -> PhysicalBound | None:
    """The bound that a candidate's time is below; None where it can be true."""
    timed = [w.calls for w in timing.windows if w.kind == "window" and w.side == "candidate"]
    calls = 1 if timing.scored_by == "single" else max(timed, default=1)
    longest_us = timing.candidate_us + CLOCK_US / calls
    moved = max(0.0, work.moved - float(peaks.get("l2_bytes", 0)) / calls)
    measured = max(float(peaks[key]) for key in ("gb_per_s", "read_gb_per_s", "write_gb_per_s") if key in peaks)
    gb_per_s = max(measured, moved / timing.library_us * 1e-3)
    margin = MARGIN_BY_INDEX if work.by_index else MARGIN
    if longest_us < (1 - margin) * moved / gb_per_s * 1e-3:
        return PhysicalBound(timing.candidate_us, moved, gb_per_s * 1e9, margin=margin)
    known = _gflop_per_s(work.dtypes, peaks["gflop_per_s"])
    fastest = max(known, work.flops / timing.library_us * 1e-3)
    if known and longest_us < (1 - ARITHMETIC_MARGIN) * work.flops / fastest * 1e-3:
        return PhysicalBound(timing.candidate_us, work.flops, fastest * 1e9, work.dtypes, ARITHMETIC_MARGIN)
    return None


def _gflop_per_s(dtypes: Sequence[str], measured: Mapping[str, Any]) -> float:
    """Of the fastest of these dtypes; 0 where nothing is known."""
    half = max((float(measured[name]) for name in ("float16", "bfloat16") if name in measured), default=0.0)
    rates = [0.0]
    for name in dtypes:
        if name in PRODUCTS:
            rates.append(max(float(measured.get(REAL.get(name, name), 0)), half / PRODUCTS[name]))
        elif name not in WIDE_INTEGERS:
            rates.append(half if name in ("float16", "bfloat16") else NARROW * half)
    return max(rates)
