"""Failures without an answer, and forbidden actions of a candidate."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True)
class Evidence:
    """One action that a candidate was seen to do, and whether the policy allows it."""

    kind: str
    """``operator``: of PyTorch's dispatcher. ``kernel``: on the device. ``package``: a Triton kernel of an installed
    package. ``host``: a function such as numpy's. ``library``: one that was loaded. ``code``: code that ran, by
    samples. ``process``: another process. ``time``, ``observer``: it behaves differently when observed.
    """
    name: str
    where: str = ""
    """Overload and case in which it was strongest."""
    count: int = 0
    share: float | None = None
    """Share of the watched calls' time, 0 to 1: time on the device where there is one. None where this kind of evidence
    has no share.
    """
    allowed: bool = True
    why: str = ""


class Limit(StrEnum):
    """What took too long."""

    ANSWER = "answer"
    WINDOW = "window"
    EVALUATION = "whole evaluation"


@dataclass(frozen=True)
class Deadline:
    limit: Limit
    seconds: float | None = None
    """The allowed seconds; None where the deadline that ran out is not known."""


@dataclass(frozen=True)
class QueueStalled:
    """Calls that were to be queued on a GPU waited for the device."""

    attempts: int


@dataclass(frozen=True)
class HostMemory:
    """The limit of the machine's memory was exceeded."""


@dataclass(frozen=True)
class Raised:
    """An exception in the worker, in its own words."""

    name: str
    """The exception's type, without its module."""
    message: str


@dataclass(frozen=True)
class Crash:
    """The worker's process ended before it answered."""

    signal: str = ""
    code: int | None = None
    cause: str = ""
    """Why the supervisor ended it; empty where it ended by itself."""
    advice: str = ""
    """Only for a library that crashed: which call it was and where that is described, as the end of a sentence."""


class Breach(StrEnum):
    """How a worker broke the rules of the harness."""

    MALFORMED = "malformed reply"
    UNASKED = "answer to a question that was not asked"
    CHANNEL = "wrote into the harness's channel"
    PRINTED = "printed too much"
    PROCESSES = "started too many processes"
    SUPERVISOR = "killed its supervisor"
    BUSY_DEVICE = "kept the device busy while it was stopped"
    RESTLESS = "went on running while it was stopped"
    WRITTEN = "wrote too much to disk"
    ENDED_REFEREE = "ended the process that judges it"


@dataclass(frozen=True)
class RuleBroken:
    breach: Breach
    words: str = ""


@dataclass(frozen=True)
class NoEntry:
    """The file defines no function, or no class, that the problem asks for."""

    entry: str
    defined: tuple[str, ...]
    is_class: bool = False


@dataclass(frozen=True)
class StateUnfit:
    """The state of the problem's module fits the candidate's neither by name nor by order and shape."""

    differences: tuple[str, ...]


@dataclass(frozen=True)
class PolicyBroken:
    """Code of others did the work."""

    evidence: Evidence


@dataclass(frozen=True)
class PhysicalBound:
    """The measured time is shorter than any such device can need."""

    took_us: float
    amount: float
    """Bytes that must be moved, or operations that must be done."""
    per_s: float
    """Largest known rate of the device, in units per second."""
    dtypes: tuple[str, ...] = ()
    """The dtypes of the operations; empty where bytes are the bound."""
    margin: float = 0.0
    """Share by which the device may be faster than that."""
