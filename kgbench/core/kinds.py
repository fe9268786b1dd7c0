"""Enumerations of problems and runs; their texts stand in files, JSON and on the command line."""

from __future__ import annotations

from enum import StrEnum
from typing import Never


class Phase(StrEnum):
    """What a case is for."""

    CHECK = "check"
    """Judged only; the problem file writes it down."""
    OPINFO = "opinfo"
    """Judged only; with the shapes of PyTorch's own samples."""
    LARGE = "large"
    """Judged only, on a GPU alone; 32 bits do not hold an offset, or 16 bits a size."""
    FUZZ = "fuzz"
    """Judged only; its sizes are drawn from the secret seed."""
    BENCH = "bench"
    """Judged and timed."""


class Kind(StrEnum):
    """How a problem is judged, and whether it is timed."""

    COMPUTE = "compute"
    VIEW = "view"
    CREATION = "creation"
    RANDOM = "random"
    SYNC = "sync"


class PolicyMode(StrEnum):
    """What happens to a candidate that leaves its work to PyTorch or a library."""

    STRICT = "strict"
    """It is rejected."""
    REPORT = "report"
    """It is reported with the verdict."""
    OFF = "off"
    """Nothing is watched."""

    @classmethod
    def _missing_(cls, value: object) -> Never:
        raise ValueError(f"policy {value!r}: expected {', '.join(cls)}")


class DeviceKind(StrEnum):
    """What kernels run on, by torch's names."""

    CUDA = "cuda"
    CPU = "cpu"
