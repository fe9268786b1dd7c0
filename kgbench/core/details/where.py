"""In which call, or in which request to a worker, something happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Purpose(StrEnum):
    """What was asked of the worker when it happened."""

    START = "start"
    IMPORT = "import"
    LIBRARY = "loading the library"
    MAPPING = "mapping memory"
    CALL = "call"
    """A case's first call."""
    AGAIN = "again"
    """A later call of a case, with new values, after all cases were correct."""
    PREPARING = "preparing"
    TIMING = "timing"
    """Asking for a window of timed calls, or waiting for one."""
    WINDOW = "window"
    """One of the calls in a timed window."""
    PROBE = "probe"
    """A call whose inputs were replaced as soon as the worker said that it was done."""
    OBSERVED = "observed"
    """A call that was watched for whose work it is."""
    DEVICE = "probing the device"


@dataclass(frozen=True)
class Where:
    """The call, or the request to a worker, in which it happened."""

    purpose: Purpose
    overload: str = ""
    case: str = ""
    """The case's id; empty where it was no call of a case."""
    number: int = 0
    """Which of the later calls with new values, from 1; 0 for any other."""
    repeated: bool = False
    """The same call with the same input was correct just before."""
    sizes: Mapping[str, int | float | str | bool] = field(default_factory=dict)
    """The case's sizes and flags, where a person needs them to understand a wrong value."""
