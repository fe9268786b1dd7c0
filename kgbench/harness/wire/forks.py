"""Messages of trusted processes about forks: requests to the fork server and to a supervisor, and their answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Self

from kgbench.harness.wire.typed import Typed

# --- a fork server's start ---


@dataclass(frozen=True)
class NotImported(Typed):
    """A module that is installed and does not import."""

    op = "not imported"
    module: str
    reason: str


@dataclass(frozen=True)
class ServerReady(Typed):
    """The fork server has imported the modules that it could."""

    op = "server ready"
    versions: dict[str, str]
    """Version by module."""
    plan: dict[str, Any]
    """The sandbox that this machine allows, as ``Plan.to_json`` has it."""
    unfit: str
    """Why a fork of it would be broken; empty when all is well."""


# --- what it is asked ---


@dataclass(frozen=True)
class WorkerLimits(Typed):
    """What a worker's process tree may use."""

    op = "limits"
    memory_bytes: int
    output_bytes: int
    """Bytes that it may print."""
    written_bytes: int
    """Bytes written to disks."""
    processes: int


@dataclass(frozen=True)
class WorkerSpec(Typed):
    """What a supervisor needs to start its worker."""

    op = "worker"
    role: str
    """A ``workers.handle.Role``."""
    stub: str
    """Dotted path of the class that answers requests there."""
    device_kind: str
    device_uuid: str
    plan: dict[str, Any]
    """The sandbox, as ``Plan.to_json`` has it."""
    hidden: list[str]
    """Folders that the worker does not see."""
    modules: list[str]
    """Folders that it may import from, beside kgbench."""
    limits: WorkerLimits
    without_gpu: bool = False
    """No GPU of the machine can be opened there."""

    @classmethod
    def decode(cls, message: Mapping[str, Any]) -> Self:
        return replace(super().decode(message), limits=WorkerLimits.decode(message["limits"]))


@dataclass(frozen=True)
class ForkReferee(Typed):
    """The coordinator asks for a referee of a session. Its channels' descriptors come along."""

    op = "fork referee"
    session: str
    entry: str
    """Dotted path of the function that is the referee's process."""
    device_uuid: str
    cache: str
    """Folder for what torch compiles."""


@dataclass(frozen=True)
class ForkWorker(Typed):
    """A referee asks for a supervisor with a worker. The descriptors of both channels come along."""

    op = "fork worker"
    spec: WorkerSpec

    @classmethod
    def decode(cls, message: Mapping[str, Any]) -> Self:
        return cls(WorkerSpec.decode(message["spec"]))


@dataclass(frozen=True)
class ForkCompiler(Typed):
    """The coordinator asks for a supervisor with a process that compiles a candidate ahead. Descriptors as above."""

    op = "fork compiler"
    session: str
    spec: WorkerSpec

    @classmethod
    def decode(cls, message: Mapping[str, Any]) -> Self:
        return cls(message["session"], WorkerSpec.decode(message["spec"]))


@dataclass(frozen=True)
class EndSession(Typed):
    """The coordinator has everything ended that was forked for a session."""

    op = "end session"
    session: str


# --- what it answers ---


@dataclass(frozen=True)
class Forked(Typed):
    """The fork's process id."""

    op = "forked"
    pid: int


@dataclass(frozen=True)
class Refused(Typed):
    """Why nothing was forked."""

    op = "refused"
    reason: str


@dataclass(frozen=True)
class SessionEnded(Typed):
    """Nothing of the session is left."""

    op = "session ended"


# --- a supervisor ---


class EndCause(StrEnum):
    """Why a worker was ended."""

    DONE = "done"
    DEADLINE = "deadline"
    REJECTED = "rejected"
    """The referee saw it break a rule."""
    PROTOCOL = "protocol"
    """It sent bytes that are no frame, or a reply to no request."""
    CHANNEL_CLOSED = "closed its channel"
    REFEREE_GONE = "the referee released it"
    MEMORY = "memory"
    OUTPUT = "output"
    PROCESSES = "processes"
    WRITTEN = "written"
    SUPERVISOR_GONE = "supervisor"
    """Its supervisor was killed from inside."""
    SUPERVISOR_FAILED = "supervisor failed"
    """Its supervisor could not start or watch it."""


@dataclass(frozen=True)
class EndWorker(Typed):
    """The referee has a worker ended, with all its descendants."""

    op = "end worker"
    cause: EndCause

    @classmethod
    def decode(cls, message: Mapping[str, Any]) -> Self:
        return cls(EndCause(message["cause"]))


@dataclass(frozen=True)
class WorkerForked(Typed):
    """A supervisor's first report: its worker is a process."""

    op = "worker forked"


@dataclass(frozen=True)
class WorkerEnded(Typed):
    """A supervisor's last report: its worker's tree is gone."""

    op = "worker ended"
    cause: EndCause | None = None
    """None where it ended by itself."""
    words: str = ""
    """What failed in the supervisor."""
    returncode: int | None = None
    """The exit status as ``os.waitstatus_to_exitcode`` gives it; None where no process could wait for it."""
    output_bytes: int = 0
    """Bytes that it printed."""
    tail: str = ""
    """The end of its output."""
    peak_mb: float = 0.0
    """Largest resident size seen, in 10⁶ bytes."""

    @classmethod
    def decode(cls, message: Mapping[str, Any]) -> Self:
        read = super().decode(message)
        return replace(read, cause=None if read.cause is None else EndCause(read.cause))
