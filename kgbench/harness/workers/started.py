"""A started worker with what the referee shares with it: an arena for tensors and the control page of its windows."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgbench.harness.wire.buffers import Arena, ControlPage, create_arena
from kgbench.harness.workers.handle import WorkerHandle


@dataclass
class Side:
    """A worker together with the arena it shares with the referee."""

    handle: WorkerHandle
    device_kind: str
    device_index: int = 0
    arena: Arena | None = None
    base: int = 0
    """Address at which the worker says it has the arena; arrays of pointers count from it. A lie harms its own call."""
    warm: set[str] = field(default_factory=set)
    """Classes of calls that have been through compilation."""

    def ensure_arena(self, nbytes: int) -> Arena:
        """An arena of at least ``nbytes``, mapped on both sides. Raises WorkerFailed."""
        if self.arena is None or self.arena.nbytes < nbytes:
            self.release()
            self.arena = create_arena(self.device_kind, nbytes, self.device_index)
            message = {"op": "map", "nbytes": self.arena.nbytes}
            reply = self.handle.request(message, 60.0, "mapping memory", (self.arena.fd,))
            address = reply.get("address")
            self.base = address if type(address) is int and 0 <= address < 2**62 else 0
        return self.arena

    def unmap(self) -> None:
        """Unmap both halves; the next call maps anew. Raises WorkerFailed."""
        if self.arena is not None:
            self.handle.request({"op": "unmap"}, 60.0, "unmapping memory")
            self.release()

    def release(self) -> None:
        """Unmap the referee's half."""
        arena, self.arena = self.arena, None
        if arena is not None:
            arena.release()


@dataclass
class Clock:
    """The control page of one side and the number of its last window."""

    page: ControlPage
    epoch: int = 0


@dataclass
class Worker:
    """A started worker with its clock and arena."""

    handle: WorkerHandle
    side: Side
    clock: Clock

    def close(self) -> None:
        self.handle.kill()
        self.side.release()
