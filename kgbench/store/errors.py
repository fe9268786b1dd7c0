"""What goes wrong with run folders."""

from __future__ import annotations

from kgbench.core.errors import MachineError, UsageError


class StoreError(UsageError):
    """A run folder cannot be made or read; exit code 2."""


class NewerError(StoreError):
    """A run folder is a newer kgbench's; exit code 2."""


class WriteError(MachineError):
    """A run folder that was made can no longer be written, for example on a full disk; exit code 3."""


def reason(error: OSError) -> str:
    """What the system says about an error, without number and path."""
    return error.strerror or str(error)
