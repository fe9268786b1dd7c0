"""What a worker is shut off from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from kgbench.harness.machine.settings import RefereeSettings, default_limits
from kgbench.harness.sandbox import surroundings
from kgbench.harness.sandbox.plan import Plan


@dataclass(frozen=True)
class Confinement:
    """Sandbox, hidden folders and limits of one worker."""

    plan: Plan
    hidden: tuple[str, ...]
    """Folders that it does not see, if it is a candidate's."""
    limits: dict[str, int]
    """Resource limits, as ``default_limits`` returns them."""

    @classmethod
    def of(cls, settings: RefereeSettings, plan: Plan) -> Confinement:
        """All protections of this machine, with what the session sets."""
        return cls(plan, settings.hidden, {**default_limits(), **settings.limits})

    def showing(self, package: str) -> Confinement:
        """The same, but the worker sees this installed package, whose kernel is judged there."""
        shown = surroundings.folders_of(package)
        return replace(self, plan=replace(self.plan, hidden=tuple(p for p in self.plan.hidden if p not in shown)))
