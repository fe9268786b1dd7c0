"""Whose files hold the code that samples found running. Pure: no process is asked."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kgbench.policy.tables import CODE

OWN: Final = ("own", "Python's", "the system's")
"""Owners whose code a candidate may run without saying so."""
ENOUGH_SAMPLES: Final = 80
"""Samples of a case after which no further window is needed."""


@functools.lru_cache(maxsize=4096)
def owner_of(path: str) -> str:
    """An owner of policy's table, else the file's name."""
    return next((owner for pattern, owner in CODE if re.search(pattern, path)), Path(path).name)


def is_others(path: str) -> bool:
    """Whether a file's code is a library's, whose work is not the candidate's."""
    return owner_of(path) not in OWN


def owners(found: Mapping[str, int]) -> Counter[str]:
    """Samples by owner, from samples by file: an owner of policy's table, else the file's name."""
    counts: Counter[str] = Counter()
    for path, count in found.items():
        counts[owner_of(path)] += count
    return counts


@dataclass
class Code:
    """What ran while somebody sampled."""

    files: Counter[str] = field(default_factory=Counter)
    """Samples by file."""
    spots: Counter[tuple[int, int]] = field(default_factory=Counter)
    """Samples by process and address, in what is taken for the candidate's own code."""
    places: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Samples by file and place in it, in others' code."""
    cpu_us: float = 0.0
    """CPU time in µs that the samples stand for, summed over threads."""
    calls: int = 0
    """Calls that were sampled."""
    failure: str = ""
    """Why a window could not be sampled; empty where all could."""

    def add(self, other: Code) -> None:
        """Count what another window showed as well."""
        self.files.update(other.files)
        self.spots.update(other.spots)
        self.places.update(other.places)
        self.cpu_us += other.cpu_us
        self.calls += other.calls

    @property
    def is_enough(self) -> bool:
        return self.files.total() >= ENOUGH_SAMPLES

    @property
    def call_us(self) -> float:
        """CPU time of a call in µs; 0 where none was sampled."""
        return self.cpu_us / max(self.calls, 1)

    @property
    def own_share(self) -> float:
        """Share of the samples in what is taken for the candidate's own code."""
        return owners(self.files)["own"] / max(self.files.total(), 1)
