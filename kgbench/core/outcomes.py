"""What can become of a candidate."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """The verdict on one candidate. The set is closed: everything that can happen is one of these."""

    PASSED = "passed"
    WRONG_VALUE = "wrong value"
    WRONG_SHAPE = "wrong shape"
    WRONG_DTYPE = "wrong dtype"
    INPUT_CHANGED = "input changed"
    COMPILE_ERROR = "compile error"
    RUNTIME_ERROR = "runtime error"
    CRASHED = "crashed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out of memory"
    REJECTED = "rejected"
    NO_CANDIDATE = "no candidate"
    NO_CODE = "no code"
    SKIPPED = "skipped"
    HARNESS_ERROR = "harness error"
