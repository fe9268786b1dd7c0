"""The names of the defences. ``weakened.py`` makes a referee without some of them; its results say so. No torch."""

from __future__ import annotations

from typing import Final

TRUST_SPLIT: Final = "trust split"
CONTRACT: Final = "contract check"
FRESH: Final = "fresh inputs"
VALUES: Final = "values"
CLOCK: Final = "referee's clock"
SINGLES: Final = "single steps"
FREEZING: Final = "freezing"
ATTRIBUTION: Final = "attribution"
SANDBOX: Final = "sandbox"
PHYSICAL_BOUND: Final = "physical bound"

DEFENCES: Final[dict[str, str]] = {
    TRUST_SPLIT: "inputs, right answers, clock and verdict are in another process; a worker's words decide nothing",
    CONTRACT: "what a call may return and may write: type, device, dtype, shape, strides, storage, guard bands",
    FRESH: "each call gets values that nobody has seen, in memory that holds nothing; later calls are judged, too",
    VALUES: "float64 references, bounds on the error, edge cases and shapes that nobody knows beforehand",
    CLOCK: "time is what the referee saw between releasing the inputs and having the outputs",
    SINGLES: "calls handed out one by one must take no longer than their share of a window",
    FREEZING: "a candidate is stopped, and the device quiet, while the library is timed and its own inputs are written",
    ATTRIBUTION: "whose operators and device kernels did the work",
    SANDBOX: "no network, no answers, no other processes, no files but its own, limits",
    PHYSICAL_BOUND: "no time below what the device's measured peaks allow",
}
"""What each defence does, by its name."""

WITHOUT: Final = {
    TRUST_SPLIT: "a judge as others have it: candidate, reference, comparison and timer in one process",
    CONTRACT: "whatever is returned is taken as a tensor, and nobody looks at what was written elsewhere",
    FRESH: "a case has the same values in the same memory in each call, and only its first call is judged",
    VALUES: "the bench shapes with normal values alone, within 1e-2 in 99 % of the elements, NaN as a wildcard",
    CLOCK: "the candidate's worker says itself what a window took",
    SINGLES: "nothing but windows of many calls is timed",
    FREEZING: "candidates and what they left on the device run on at all times",
    ATTRIBUTION: "nobody asks whose work it was",
    SANDBOX: "level none, no folder hidden, no limits",
    PHYSICAL_BOUND: "any time is believed",
}
"""What replaces each defence when it is disabled, by its name."""
