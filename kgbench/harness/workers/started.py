"""A started worker with what the referee shares with it: a buffer for tensors and the control page of its windows."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgbench.core.details.where import Purpose, Where
from kgbench.core.kinds import DeviceKind
from kgbench.harness.wire.buffers import ControlPage, SharedBuffer, create_buffer
from kgbench.harness.wire.requests import Map, Unmap
from kgbench.harness.workers.handle import WorkerHandle


@dataclass
class WorkerSide:
    """A worker together with the buffer it shares with the referee."""

    handle: WorkerHandle
    device_kind: DeviceKind
    device_index: int = 0
    buffer: SharedBuffer | None = None
    base: int = 0
    """Address at which the worker says it has the buffer; arrays of pointers count from it. A lie harms its call."""
    warm: set[str] = field(default_factory=set)
    """Classes of calls that have been through compilation."""

    def ensure_buffer(self, nbytes: int) -> SharedBuffer:
        """A buffer of at least ``nbytes``, mapped on both sides. Raises WorkerFailed."""
        if self.buffer is None or self.buffer.nbytes < nbytes:
            self.release()
            self.buffer = create_buffer(self.device_kind, nbytes, self.device_index)
            reply = self.handle.request(Map(self.buffer.nbytes), 60.0, Where(Purpose.MAPPING), (self.buffer.fd,))
            address = reply.get("address")
            self.base = address if type(address) is int and 0 <= address < 2**62 else 0
        return self.buffer

    def unmap(self) -> None:
        """Unmap the buffer on both sides; the next call maps it again. Raises WorkerFailed."""
        if self.buffer is not None:
            self.handle.request(Unmap(), 60.0, Where(Purpose.MAPPING))
            self.release()

    def release(self) -> None:
        """Unmap the referee's half."""
        buffer, self.buffer = self.buffer, None
        if buffer is not None:
            buffer.release()


@dataclass
class Clock:
    """The control page of one side and the number of its last window."""

    page: ControlPage
    epoch: int = 0


@dataclass
class Worker:
    """A started worker with its clock and buffer."""

    handle: WorkerHandle
    side: WorkerSide
    clock: Clock

    def close(self) -> None:
        self.handle.kill()
        self.side.release()
