"""Why nothing was judged: no code, nothing that runs here, or a fault of the harness."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Requirement(StrEnum):
    """What a candidate's language needs of the machine."""

    GPU_FOR_CUPY = "a GPU for cupy"
    CUPY = "cupy"
    TRITON = "triton"
    COMPILER = "a C++ compiler"
    HEADERS = "the headers of Python"
    NINJA = "ninja"
    SETUPTOOLS = "setuptools"
    FOLDER_WITHOUT_SPACE = "torch in a folder without a space"
    GPU_FOR_CUDA = "a GPU for cuda_sources"
    NVCC = "nvcc"


@dataclass(frozen=True)
class Lacking:
    """What the candidate cannot do without and this machine does not have."""

    requirements: tuple[Requirement, ...]
    cuda: str = ""
    """The version of CUDA that torch is built for."""


@dataclass(frozen=True)
class Capability:
    """The device's compute capability is not what the problem needs; 90 stands for 9.0."""

    lowest: int
    highest: int | None
    reason: str
    had: int


@dataclass(frozen=True)
class DeviceMemory:
    """The device cannot hold a large call; in units of 1e9 bytes."""

    needed_gb: float
    had_gb: float


@dataclass(frozen=True)
class NotApplicable:
    """A mutant that cannot show in this overload."""

    why: str


@dataclass(frozen=True)
class NoLibrary:
    """The library that was to run in the candidate's place is not available."""

    why: str


class CodeProblem(StrEnum):
    """Why there is no code to judge."""

    CUT_OFF = "the reply was cut off at its limit of tokens"
    STOPPED = "the provider stopped the reply"
    IN_THOUGHTS = "the reply ends inside its thinking"
    ONLY_THOUGHTS = "the reply holds nothing but its thinking"
    EMPTY = "the reply is empty"
    NO_BLOCK = "the reply has no code block"
    EMPTY_BLOCK = "the reply's code block is empty"
    NOT_PYTHON = "no code block of the reply is Python"
    NUL = "the code has a NUL character, which Python does not read"
    TOO_LONG = "the reply is longer than a candidate may be"
    NO_FUNCTION = "the file defines a class and no function that the problem asks for"
    UNREADABLE = "the file cannot be read"
    NO_REPLY = "there is no reply"


@dataclass(frozen=True)
class NoCode:
    problem: CodeProblem | None
    """None where an earlier version stored the reply."""
    words: str
    """The reason in words, with names and numbers."""


@dataclass(frozen=True)
class NoCandidate:
    """Nothing was submitted."""

    words: str


@dataclass(frozen=True)
class NotOffered:
    """An installed package that is judged through an adapter does not offer this call, or the whole operator."""

    package: str
    """The package's name and version: ``liger_kernel 0.8.5``."""
    words: str


class Fault(StrEnum):
    """Failures of the harness."""

    NO_ROOM = "too little memory"
    BUSY_DEVICE = "the device stays busy"
    DISTURBED = "another candidate went on running while it was stopped"
    LOST = "a process of the harness is gone"
    BROKE_DEVICE = "the device stopped working meanwhile"
    """With nobody else left to judge the candidate. Others may have been judged beside it."""
    BROKE_DEVICES = "a device stopped working twice while this was judged, the second time alone"


@dataclass(frozen=True)
class HarnessTrouble:
    fault: Fault
    words: str
