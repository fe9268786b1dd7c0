"""``--shard 3/8``: one of several parts of a run that are judged apart, on machines that know nothing of each other."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from kgbench.core.errors import UsageError

_T = TypeVar("_T")


@dataclass(frozen=True)
class Shard:
    number: int
    """This shard's number, counted from 1."""
    count: int
    """Number of parts of the run."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse ``3/8``. Raises UsageError."""
        found = re.fullmatch(r"(\d+)/(\d+)", text)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count:
            words = f"--shard {text}: expected NUMBER/COUNT with a number from 1 to count, for example --shard 3/8"
            raise UsageError("KGB150", words)
        return cls(number, count)

    def of(self, units: Sequence[_T]) -> Sequence[_T]:
        """Every ``count``-th unit. The shards of one list have each unit once."""
        return units[self.number - 1 :: self.count]

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"
