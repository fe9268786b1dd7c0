"""Memory that the referee owns and a worker may use: sealed memfd on the CPU, the driver's allocations on a GPU.

Both sides use this module: the referee creates a buffer and sends its descriptor, the worker maps it. Every tensor
made from a buffer has a storage of its own, exactly as long as its payload, so that nothing beside it is reachable
through torch. Also here: the control page, a page of host memory that both the CPU and the GPU can write, which
releases a queued window and says when it is done.
"""

from __future__ import annotations

import base64
import ctypes
import fcntl
import mmap
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import torch

from kgbench.harness.wire.device import GPU

LAZY_BITS: Final[dict[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "": lambda tensor: tensor,
    "conj": torch.conj,
    "neg": torch._neg_view,
}
"""Functions that set a tensor's lazy conjugate or negative bit, by their names in messages."""
ALIGNMENT_BYTES: Final = 512
"""Bytes to a multiple of which every tensor's place in a buffer is aligned."""
_SEALS: Final = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
"""Seals of a memfd after which its size is fixed."""


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


class SharedBuffer:
    """``nbytes`` of shared memory. ``fd`` is what the other side maps; ``bytes_at`` makes tensors in it."""

    fd: int
    nbytes: int
    address: int
    """Address at which this process has it mapped; on a GPU an address of the device."""

    def bytes_at(self, offset: int, nbytes: int) -> torch.Tensor:
        """uint8 tensor of shape (nbytes,) with a storage of its own at a byte offset."""
        raise NotImplementedError

    def store(self, place: TensorPlace, values: torch.Tensor) -> None:
        """Copy a tensor of the place's shape and dtype to it, which are dense there."""
        tensor_at(self, place).copy_(values)

    def release(self) -> None:
        """Give the mapping back. Nothing made from this buffer may be used afterwards."""
        raise NotImplementedError


class HostBuffer(SharedBuffer):
    """A memfd, sealed against resizing, mapped shared."""

    def __init__(self, fd: int, nbytes: int) -> None:
        self.fd = fd
        self.nbytes = nbytes
        self._map = mmap.mmap(fd, nbytes)
        self.address = torch.frombuffer(self._map, dtype=torch.uint8).data_ptr()

    @classmethod
    def create(cls, nbytes: int) -> HostBuffer:
        nbytes = round_up(max(nbytes, 1), mmap.PAGESIZE)
        fd = os.memfd_create("kgbench-buffer", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, nbytes)
        # An unsealed memfd that the worker truncates kills its reader with SIGBUS.
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
        return cls(fd, nbytes)

    def bytes_at(self, offset: int, nbytes: int) -> torch.Tensor:
        if nbytes == 0:
            return torch.empty(0, dtype=torch.uint8)
        return torch.frombuffer(self._map, dtype=torch.uint8, count=nbytes, offset=offset)

    def store(self, place: TensorPlace, values: torch.Tensor) -> None:
        if not values.is_contiguous() or values.is_conj() or values.is_neg():
            super().store(place, values)
        else:
            # A window's outputs are copied while its code may still be sampled: code of PyTorch's would be held against
            # the candidate.
            ctypes.memmove(self.address + place.storage_offset_bytes, values.data_ptr(), place.storage_bytes)

    def release(self) -> None:
        # Tensors may still export the map; it goes with the last of them.
        os.close(self.fd)


class DeviceBuffer(SharedBuffer):
    """Memory of a GPU."""

    def __init__(self, fd: int, nbytes: int, device: int, handle: Any = None) -> None:
        self.fd = fd
        self.nbytes = nbytes
        self.device = device
        self.address = GPU.map(GPU.opened(fd) if handle is None else handle, nbytes, device)

    @classmethod
    def create(cls, nbytes: int, device: int) -> DeviceBuffer:
        fd, rounded, handle = GPU.create(nbytes, device)
        return cls(fd, rounded, device, handle)

    def bytes_at(self, offset: int, nbytes: int) -> torch.Tensor:
        return GPU.bytes_at(self.address + offset, nbytes, self.device)

    def release(self) -> None:
        GPU.unmap(self.address, self.nbytes)
        os.close(self.fd)


def create_buffer(device_kind: str, nbytes: int, device: int = 0) -> SharedBuffer:
    """Referee side: new memory to share."""
    return DeviceBuffer.create(nbytes, device) if device_kind == "cuda" else HostBuffer.create(nbytes)


def open_buffer(device_kind: str, fd: int, nbytes: int, device: int = 0) -> SharedBuffer:
    """Worker side: map what came over the socket."""
    return DeviceBuffer(fd, nbytes, device) if device_kind == "cuda" else HostBuffer(fd, nbytes)


@dataclass(frozen=True)
class TensorPlace:
    """Where a tensor lies in a buffer; this is what travels to a worker."""

    storage_offset_bytes: int
    storage_bytes: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    """Elements from the start of the storage."""

    def to_json(self) -> dict[str, Any]:
        return {
            "tensor": [
                self.storage_offset_bytes,
                self.storage_bytes,
                self.dtype,
                list(self.shape),
                list(self.strides),
                self.offset,
            ]
        }


def tensor_at(buffer: SharedBuffer, place: TensorPlace) -> torch.Tensor:
    """The tensor a place describes, with a storage of exactly its payload."""
    storage = buffer.bytes_at(place.storage_offset_bytes, place.storage_bytes)
    typed = storage.view(getattr(torch, place.dtype))
    return typed.as_strided(place.shape, place.strides, place.offset)


def encode_tensor(tensor: torch.Tensor) -> dict[str, Any]:
    """A small tensor that travels by its values, as JSON; it arrives in the memory of the host."""
    values = tensor.cpu().contiguous()
    data = values.reshape(-1).view(torch.uint8).numpy().tobytes()
    return {"host": [str(values.dtype).removeprefix("torch."), list(values.shape), base64.b64encode(data).decode()]}


def decode_tensor(value: dict[str, Any]) -> torch.Tensor:
    """The inverse of encode_tensor, with memory of its own."""
    dtype, shape, data = value["host"]
    flat = torch.tensor(list(base64.b64decode(data)), dtype=torch.uint8)
    return flat.view(getattr(torch, dtype)).reshape(shape)


_WORD: Final = 0xFFFFFFFF
"""The largest value of a word."""


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000 & _WORD


class ControlPage:
    """A page of host memory shared with a worker, for the three moments of a timed window.

    The referee writes RELEASE when the inputs may be read; the worker's stream (or, unqueued, its CPU) writes
    DONE after the last call and SECURED after the outputs lie in the referee's buffer. Words are 64 bytes apart.
    Two more say how long the worker has compiled: COMPILING is the time at which it began, COMPILED the time before
    that, both in ms and the first of the monotonic clock.
    """

    RELEASE: Final = 0
    DONE: Final = 16
    SECURED: Final = 32
    COMPILING: Final = 48
    COMPILED: Final = 64

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, mmap.PAGESIZE)
        self.words = memoryview(self._map).cast("I")
        self._device_address: int | None = None

    @classmethod
    def create(cls) -> ControlPage:
        fd = os.memfd_create("kgbench-control", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, mmap.PAGESIZE)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
        return cls(fd)

    def compiling_begins(self) -> None:
        self.words[self.COMPILING] = _now_ms() or 1

    def compiling_ends(self) -> None:
        self.words[self.COMPILED] = self.compiled_ms
        self.words[self.COMPILING] = 0

    @property
    def compiled_ms(self) -> int:
        """Time that the worker says it has compiled so far, in ms."""
        since = self.words[self.COMPILING]
        under_way = (_now_ms() - since) & _WORD if since else 0
        return (self.words[self.COMPILED] + under_way) & _WORD

    def device_address(self) -> int:
        """Address of the page for the GPU; registers it with the driver once per process."""
        if self._device_address is None:
            host = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
            self._device_address = GPU.register(host, mmap.PAGESIZE)
        return self._device_address

    def stream_wait(self, stream: int, word: int, value: int) -> None:
        """Everything queued on the stream after this waits until the word equals ``value``."""
        GPU.stream_wait(stream, self.device_address() + 4 * word, value)

    def stream_write(self, stream: int, word: int, value: int) -> None:
        """Write the word once everything queued on the stream before this is done."""
        GPU.stream_write(stream, self.device_address() + 4 * word, value)
