"""A candidate to judge without some defences. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from kgbench.harness.machine.settings import Job
from kgbench.selftest.ablation.defences import DEFENCES

ABLATING_REFEREE: Final = "kgbench.selftest.ablation.referee:main"
"""``Settings.referee`` of a session that takes such jobs; every other refuses them."""


@dataclass(frozen=True)
class AblatedJob(Job):
    """A job for an ablating referee."""

    without: tuple[str, ...] = ()
    """Names of ``DEFENCES`` that are disabled; empty for a job like any other."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """See ``Job.from_json``; also raises ValueError where a defence is unknown."""
        without = tuple(data.get("without", ()))
        if unknown := set(without) - set(DEFENCES):
            raise ValueError(f"there are no such defences: {sorted(unknown)}")
        return super().from_json({**data, "without": without})
