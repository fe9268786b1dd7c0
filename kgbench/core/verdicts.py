"""The verdict on one call, one case or one overload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kgbench.core.details.sentences import sentence
from kgbench.core.details.union import Detail
from kgbench.core.details.where import Where
from kgbench.core.outcomes import Outcome


@dataclass(frozen=True)
class Verdict:
    """An outcome, its detail and its place. A correct one is ``PASSED`` and has neither."""

    outcome: Outcome
    detail: Detail | None = None
    where: Where | None = None

    @property
    def reason(self) -> str:
        """The sentence for people; nothing reads it back."""
        return "" if self.detail is None else sentence(self.detail, self.where)


PASSED: Final = Verdict(Outcome.PASSED)
"""The only verdict of a correct call: compare with ``is``."""
