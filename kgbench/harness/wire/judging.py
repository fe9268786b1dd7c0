"""Messages between the coordinator and a referee."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from kgbench.harness.wire.typed import Typed


@dataclass(frozen=True)
class StartReferee(Typed):
    """The first message: the referee's settings."""

    op = "start"
    settings: dict[str, Any]
    """The form of ``RefereeSettings.to_json``."""
    plan: dict[str, Any]
    """The form of ``Plan.to_json``."""


@dataclass(frozen=True)
class Judge(Typed):
    """Judge one candidate."""

    op = "judge"
    job: dict[str, Any]
    """The form of ``Job.to_json``."""


@dataclass(frozen=True)
class RefereeReady(Typed):
    """The answer to ``StartReferee``."""

    op = "referee ready"
    facts: dict[str, Any]
    """What is known of device and libraries."""
    properties: dict[str, Any]
    """The GPU's, by the names of ``torch.cuda.get_device_properties``; empty without one."""


@dataclass(frozen=True)
class RefereeFailed(Typed):
    """The other answer to ``StartReferee``."""

    op = "referee failed"
    reason: str


@dataclass(frozen=True)
class Progress(Typed):
    """How far the judging has come."""

    op = "progress"
    phase: str
    detail: str


@dataclass(frozen=True)
class Judged(Typed):
    """The answer to ``Judge``."""

    op = "judged"
    result: dict[str, Any]
    """The form of ``Result.to_json``, without NaN and infinity."""
    library_times: dict[str, Any]
    """The library's times that others may use, by ``overload/case``."""


@dataclass(frozen=True)
class BrokenDevice(Typed):
    """The device no longer computes; nothing was judged."""

    op = "broken device"
    reason: str


@dataclass(frozen=True)
class NoRoom(Typed):
    """Memory ran out for the referee or the library; nothing was judged."""

    op = "no room"
    reason: str


@dataclass(frozen=True)
class Untimed(Typed):
    """A correct candidate could not be timed for reasons outside it."""

    op = "untimed"
    fault: str
    """A ``Fault``."""
    reason: str


@dataclass(frozen=True)
class Broken(Typed):
    """The referee itself failed."""

    op = "broken"
    reason: str
    """The end of a traceback."""


Report = Progress | Judged | BrokenDevice | NoRoom | Untimed | Broken
REPORTS: Final[tuple[type[Report], ...]] = (Progress, Judged, BrokenDevice, NoRoom, Untimed, Broken)
"""What may follow a ``Judge``."""
