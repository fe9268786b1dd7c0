"""Whose code a candidate's threads ran, by samples taken from outside. Pure: no process is asked.

Allowed work on a CPU is the candidate's compiled code, Python's, and Triton's interpreter's. Time in the libraries of
PyTorch or numpy must be accounted for by calls that were seen there; time in any other library never is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kgbench.core.details.failures import Evidence
from kgbench.harness.attribution.account import Observation
from kgbench.policy.tables import CODE

LEAST_SAMPLES: Final = 60
"""Samples below which nothing is said: some 6 ms of a processor's work."""
STRANGE_SHARE: Final = {False: 0.25, True: 0.5}
"""Share of the samples in a library's code, beyond what is accounted for, from which it did the work; by whether
Triton's interpreter was at work, which is sampled with what the harness does around a call."""
OWN: Final = ("own", "Python's", "the system's")
"""Owners whose code a candidate may always run."""


def owners(found: Mapping[str, int]) -> Counter[str]:
    """Samples by owner, from samples by file: an owner of policy's table, else the file's name."""
    counts: Counter[str] = Counter()
    for path, count in found.items():
        owner = next((owner for pattern, owner in CODE if re.search(pattern, path)), Path(path).name)
        counts[owner] += count
    return counts


def strangers(found: Mapping[str, int], seen: Observation, interpreted: bool, where: str) -> list[Evidence]:
    """Code of others that ran and is not accounted for by the calls that were ``seen``."""
    counts = owners(found)
    total = sum(counts.values())
    if total < LEAST_SAMPLES or seen.lost or not seen.wall_us:
        return []
    accounted = {"PyTorch's": seen.operators_us, "numpy's": seen.host_us + (seen.launched_us if interpreted else 0.0)}
    evidence = []
    for owner, count in counts.items():
        share, known = count / total, min(accounted.get(owner, 0.0) / seen.wall_us, 1.0)
        if owner not in OWN and share - known >= STRANGE_SHARE[interpreted]:
            why = f"its code ran for {share:.0%} of the time, and calls that were seen account for {known:.0%}"
            evidence.append(Evidence("code", owner, where, count, share, False, why))
    return evidence
