"""Errors about run folders."""

from __future__ import annotations

from kgbench.core.errors import MachineError, UsageError


class StoreError(UsageError):
    """A run folder cannot be made or read; exit code 2."""


class NewerError(StoreError):
    """A newer kgbench wrote the run folder; exit code 2."""


class WriteError(MachineError):
    """A run folder was created but can no longer be written, for example on a full disk; exit code 3."""


def reason(error: OSError) -> str:
    """The operating system's message for an error, without its number and path."""
    return error.strerror or str(error)
