"""What is decided about one call, one case or one overload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kgbench.core.outcomes import Outcome
from kgbench.core.types import Mismatch


@dataclass(frozen=True)
class Verdict:
    """An outcome with its reason."""

    outcome: Outcome
    reason: str = ""
    mismatch: Mismatch | None = None


PASSED: Final = Verdict(Outcome.PASSED)
"""The only verdict of what is right: compare with ``is``."""


def mismatch_words(mismatch: Mismatch) -> str:
    """What a reader is told of a wrong value."""
    where = f"{mismatch.output}{list(mismatch.index)}"
    share = f"{mismatch.wrong_share:.1%} of {list(mismatch.shape)} {mismatch.dtype} wrong"
    return f"{where}: got {mismatch.got}, wanted {mismatch.wanted}, limit {mismatch.limit}; {share}"
