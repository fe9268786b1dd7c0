"""Whose code a candidate's threads ran, by samples taken from outside. Pure: no process is asked.

Allowed work on a CPU is the candidate's compiled code, Python's, and Triton's interpreter's. Time in the libraries of
PyTorch or numpy must be accounted for by calls that were seen there; time in any other library never is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kgbench.core.details.failures import Evidence
from kgbench.harness.attribution.account import Observation
from kgbench.harness.attribution.code import OWN, Code, is_others, owners

LEAST_SAMPLES: Final = 60
"""Samples below which nothing is said: some 6 ms of a processor's work."""
STRANGE_SHARE: Final = 0.25
"""Share of the samples in a library's code, beyond what is accounted for, from which it did the work."""
INTERPRETED_SHARE: Final = 0.5
"""The same where Triton's interpreter was at work, which is sampled with what the harness does around a call."""
WATCHED_FACTOR: Final = 3.0
"""How many times its time in watched calls code may take in others: both are small numbers of samples."""
UNWATCHED_SHARE: Final = 0.4
"""Share of the samples in libraries' code beyond that from which it did the work that nobody should see."""


def strangers(
    found: Mapping[str, int], seen: Observation, took_us: float, least_share: float, where: str
) -> list[Evidence]:
    """Code of others that ran and is not accounted for by the calls that were ``seen``.

    Args:
        found: samples by file.
        seen: an account of as many calls as took ``took_us``.
        took_us: CPU time in µs of these calls, other programs' not in it.
        least_share: of the samples, unaccounted for, from which it did the work.
    """
    counts = owners(found)
    total = sum(counts.values())
    if total < LEAST_SAMPLES or seen.lost:
        return []
    accounted = {"PyTorch's": seen.operators_us, "numpy's": seen.host_us}
    evidence = []
    for owner, count in counts.items():
        # Calls that took no time account for nothing.
        share, known = count / total, min(accounted.get(owner, 0.0) / took_us, 1.0) if took_us else 0.0
        if owner not in OWN and share - known >= least_share:
            why = f"its code ran for {share:.0%} of the time, and calls that were seen account for {known:.0%}"
            evidence.append(Evidence("code", owner, where, count, share, False, why))
    return evidence


def unwatched(timed: Code, watched: Code, where: str) -> list[Evidence]:
    """Libraries' code that ran while nobody in the process watched, and not, or far less, when somebody did.

    Times of a call are compared, since the observer's own work is in those that were watched, and shares, since the
    values of others may be such that they take longer: what is less of the two counts.
    """
    total = timed.files.total()
    if min(total, watched.files.total()) < LEAST_SAMPLES:
        return []
    times = max(timed.calls / max(watched.calls, 1), total / watched.files.total())
    more = 0.0
    for (path, at), count in timed.places.items():
        near = sum(watched.places[path, at + step] for step in (-1, 0, 1))
        more += max(0.0, count - WATCHED_FACTOR * near * times) / total if is_others(path) else 0.0
    if more < UNWATCHED_SHARE:
        return []
    why = f"{more:.0%} of the time went to libraries' code that did not run when its calls were observed"
    return [Evidence("code", "behaves differently when observed", where, 1, more, False, why)]
