"""What the harness needs of a GPU beyond PyTorch's tensors: the interface to all CUDA-specific calls.

``cuda.py`` is its only implementation, ``device.py`` selects it. docs/design/0010-devices.md says call by call what
another one needs. Finding GPUs and hiding them from a process needs no torch: ``kgbench/harness/machine/devices.py``
and ``visible.py``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import torch

T = TypeVar("T")


class Gpu(ABC):
    """Calls of one vendor's runtime. Devices are PyTorch's; without one the current device of the process is meant."""

    # --- what it is ---

    @abstractmethod
    def name(self) -> str:
        """Of device 0, as its driver calls it."""

    @abstractmethod
    def capability(self) -> int:
        """Compute capability of device 0, 90 for 9.0."""

    @abstractmethod
    def properties(self) -> dict[str, Any]:
        """Numbers and texts that torch tells of device 0, by their names."""

    @abstractmethod
    def memory_bytes(self, device: torch.device | None = None) -> int:
        """All memory of the device, by default of device 0."""

    @abstractmethod
    def l2_bytes(self, device: torch.device) -> int:
        """Size of the second-level cache."""

    @abstractmethod
    def version(self) -> str | None:
        """Version of the runtime that torch is built for; None in a build without one. Touches no device."""

    @abstractmethod
    def is_touched(self) -> bool:
        """Whether this process has initialised the runtime, after which it must not fork."""

    # --- streams and time ---

    @abstractmethod
    def wait(self, device: torch.device | None = None) -> None:
        """Wait until all work of the device is done. Raises RuntimeError for a fault of the device."""

    @abstractmethod
    def stream(self) -> int:
        """The current stream, as the calls below take it."""

    @abstractmethod
    def another_stream(self) -> AbstractContextManager[Any]:
        """A context in which work runs on a separate stream."""

    @abstractmethod
    def idle(self, cycles: int) -> None:
        """Keep the current stream busy for so many clock cycles, without memory."""

    @abstractmethod
    def events(self) -> tuple[Any, Any]:
        """Two marks for a stream, with ``record()``, ``synchronize()`` and ``elapsed_time(other)`` in milliseconds."""

    @abstractmethod
    def recorded(self, work: Callable[[], T]) -> tuple[Callable[[], None], T]:
        """The device's part of ``work`` as a function that repeats it in one launch, and what ``work`` returned.

        Repeating writes the same memory again. Raises RuntimeError where ``work`` waits for the device.
        """

    @abstractmethod
    def stream_wait(self, stream: int, address: int, value: int) -> None:
        """Everything queued on the stream after this waits until the 32-bit word equals ``value``.

        The address is one of ``register``'s.
        """

    @abstractmethod
    def stream_write(self, stream: int, address: int, value: int) -> None:
        """Write the 32-bit word once everything queued on the stream before this is done, and its writes are seen."""

    # --- memory ---

    @abstractmethod
    def free_bytes(self) -> int:
        """Memory of the current device that no process holds."""

    @abstractmethod
    def cached_bytes(self) -> int:
        """Memory that torch's allocator holds in this process, in use or not."""

    @abstractmethod
    def release_cached(self) -> None:
        """Give what the allocator holds and nothing uses back to the device, for other processes."""

    @abstractmethod
    def create(self, nbytes: int, device: int) -> tuple[int, int, Any]:
        """Memory that other processes can map: a file descriptor, bytes (rounded up), and a handle for ``map``.

        Raises OutOfMemoryError.
        """

    @abstractmethod
    def opened(self, fd: int) -> Any:
        """A handle for ``map``, of memory that another process created."""

    @abstractmethod
    def map(self, handle: Any, nbytes: int, device: int) -> int:
        """Address of the device at which this process reads and writes the memory; the handle is used up."""

    @abstractmethod
    def unmap(self, address: int, nbytes: int) -> None:
        """Undo ``map``. The memory is freed with its last mapping and descriptor."""

    @abstractmethod
    def bytes_at(self, address: int, nbytes: int, device: int) -> torch.Tensor:
        """uint8 tensor over mapped memory, with a storage of exactly so many bytes."""

    @abstractmethod
    def register(self, address: int, nbytes: int) -> int:
        """Address for the device of a page of the host's memory, which both sides may write from now on."""

    # --- random numbers ---

    @abstractmethod
    def set_random_state(self, state: torch.Tensor, device: torch.device) -> None:
        """Set the state of the device's generator, as ``Generator.get_state`` gives it."""

    # --- attribution ---

    @abstractmethod
    def activity(self) -> Any:
        """What PyTorch's tracer (Kineto) has to record to see every kernel and copy of the device."""
