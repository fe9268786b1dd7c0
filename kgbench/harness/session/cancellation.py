"""Cancels one evaluation of a session from another thread; the session goes on with the others."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from kgbench.core.errors import MachineError


class Cancelled(MachineError):
    """Somebody cancelled the evaluation; its candidate is ended."""

    def __init__(self) -> None:
        super().__init__("KGB340", "the evaluation was cancelled; its candidate is ended")


class Cancellation:
    """Belongs to one evaluation, and can be cancelled once, at any time and from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cancelled = False
        self._judging: socket.socket | None = None

    @property
    def is_cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        """Shut the referee's channel down, so that the thread that waits for the verdict wakes up and ends it."""
        with self._lock:
            self._cancelled = True
            if self._judging is not None:
                with contextlib.suppress(OSError):
                    self._judging.shutdown(socket.SHUT_RDWR)

    @contextlib.contextmanager
    def while_judging(self, channel: socket.socket) -> Iterator[None]:
        """A referee judges through this channel inside the block. Raises Cancelled where it was cancelled before."""
        with self._lock:
            if self._cancelled:
                raise Cancelled
            self._judging = channel
        try:
            yield
        finally:
            with self._lock:
                self._judging = None
