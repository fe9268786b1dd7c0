"""What can happen to a referee, a device or a session while a candidate is judged."""

from __future__ import annotations

from kgbench.core.details.absence import Fault
from kgbench.core.errors import MachineError


class SessionClosed(MachineError):
    """The session ended while a candidate was waiting or being judged; exit code 3."""


class ProcessLost(Exception):
    """A fork server or a referee is gone; with a referee, what it was judging."""

    def __init__(self, reason: str, *, without_a_word: bool = False, fault: Fault = Fault.LOST) -> None:
        super().__init__(reason)
        self.fault = fault
        self.without_a_word = without_a_word
        """True where it was killed, hangs or lacks memory, without an error of its own."""


class OutOfMemory(Exception):
    """Memory ran out for a referee or for its library."""


class RefereeGone(Exception):
    """A referee was gone before it was asked."""


class DeviceBroken(Exception):
    """A device no longer computes."""
