"""Framed JSON over a Unix socket, with deadlines: all that any two processes of a run say to each other.

A frame is a little-endian uint32 length and that many bytes of UTF-8 JSON. File descriptors travel beside a frame
from trusted to untrusted only: what a worker attaches is dropped by the kernel because nobody asks for it.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, Final

MOST_BYTES: Final = 64 << 20
"""Bytes of a frame at most, between processes that trust each other."""
MOST_TOLD_BYTES: Final = 1 << 20
"""Bytes of a frame of a worker's at most; one that announces more is broken or hostile."""
MOST_DEPTH: Final = 32
"""Lists and objects that lie in each other in a frame of a worker's at most: a referee writes out what it refuses, by
recursion."""
MAX_FDS: Final = 16
"""File descriptors beside a frame at most."""
_HEADER: Final = struct.Struct("<I")
"""Bytes before a frame's body: its length."""

Message = dict[str, Any]


class ChannelClosed(Exception):
    """The other side is gone."""


class ChannelTimeout(Exception):
    """Nothing complete arrived before the deadline."""


class ProtocolError(Exception):
    """The other side sent something that is not the frame that was asked for."""


class Channel:
    """One end of a connection. Not shared between threads."""

    def __init__(
        self,
        sock: socket.socket,
        accepts_fds: bool = False,
        limit_bytes: int = MOST_BYTES,
        limit_depth: int | None = None,
    ) -> None:
        """``limit_bytes``: what a frame that is received may have; ``limit_depth``: how deep it may be."""
        self.socket = sock
        self._buffer = bytearray()
        self._accepts_fds = accepts_fds
        self._limit_bytes = limit_bytes
        self._limit_depth = limit_depth
        self._fds: list[int] = []

    def fileno(self) -> int:
        return self.socket.fileno()

    def send(self, message: Message, fds: Sequence[int] = (), timeout_s: float = 30.0) -> None:
        """Send one frame; descriptors ride on its first byte. Raises ChannelClosed, ChannelTimeout."""
        if fds:
            message = {**message, "fds": len(fds)}
        body = json.dumps(message, separators=(",", ":"), allow_nan=False).encode()
        data = memoryview(_HEADER.pack(len(body)) + body)
        try:
            self.socket.settimeout(timeout_s)
            if fds:
                sent = socket.send_fds(self.socket, [data[:1]], list(fds))
                data = data[sent:]
            self.socket.sendall(data)
        except TimeoutError as error:
            raise ChannelTimeout(f"peer did not read for {timeout_s:g} s") from error
        except OSError as error:
            raise ChannelClosed(str(error)) from error

    def receive(self, timeout_s: float | None = None) -> Message:
        """The next frame. Raises ChannelClosed, ChannelTimeout, ProtocolError."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            message = self._pop()
            if message is not None:
                return message
            remaining = None if deadline is None else deadline - time.monotonic()
            if remaining is not None and remaining <= 0:
                raise ChannelTimeout(f"no reply within {timeout_s:g} s")
            if not select.select([self.socket], [], [], remaining)[0]:
                continue
            self.fill()

    def receive_with_fds(self, timeout_s: float | None = None) -> tuple[Message, list[int]]:
        """The next frame and the descriptors sent with it; only on a channel that accepts them."""
        message = self.receive(timeout_s)
        count = int(message.pop("fds", 0))
        fds, self._fds = self._fds[:count], self._fds[count:]
        return message, fds

    def fill(self) -> None:
        """Read what is there into the buffer; returns after one read. Raises ChannelClosed at the end."""
        try:
            if self._accepts_fds:
                data, fds, _, _ = socket.recv_fds(self.socket, 1 << 16, MAX_FDS)
                self._fds += fds
            else:
                data = self.socket.recv(1 << 16)
        except OSError as error:
            raise ChannelClosed(str(error)) from error
        if not data:
            raise ChannelClosed("end of stream")
        self._buffer += data

    def pending(self) -> Message | None:
        """A frame that has already arrived whole, or None."""
        return self._pop()

    def _pop(self) -> Message | None:
        if len(self._buffer) < _HEADER.size:
            return None
        (size,) = _HEADER.unpack_from(self._buffer)
        if size > self._limit_bytes:
            raise ProtocolError(f"frame of {size} bytes announced, {self._limit_bytes} is the limit")
        end = _HEADER.size + size
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[_HEADER.size : end])
        del self._buffer[:end]
        try:
            message = json.loads(body, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            raise ProtocolError(f"not JSON: {error}") from error
        if not isinstance(message, dict):
            raise ProtocolError("not an object")
        if self._limit_depth is not None and is_deeper(message, self._limit_depth):
            raise ProtocolError(f"more than {self._limit_depth} lists and objects in each other")
        return message

    def close(self) -> None:
        self.socket.close()


def is_deeper(value: Any, most: int) -> bool:
    """Whether more than ``most`` lists and objects lie in each other; no recursion."""
    level = [value]
    for _ in range(most + 1):
        if not (level := [each for each in level if isinstance(each, (list, dict))]):
            return False
        level = [part for each in level for part in (each.values() if isinstance(each, dict) else each)]
    return True


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected stream sockets."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)


def encode_scalar(value: Any) -> Any:
    """A Python argument as JSON: complex, non-finite floats and dtypes become tagged objects."""
    if isinstance(value, complex):
        return {"complex": [repr(value.real), repr(value.imag)]}
    if isinstance(value, float):
        return {"float": repr(value)}
    return value


def decode_scalar(value: Any) -> Any:
    """The inverse of encode_scalar."""
    if isinstance(value, dict):
        if "complex" in value:
            return complex(*(float(part) for part in value["complex"]))
        if "float" in value:
            return float(value["float"])
    return value
