"""A connection of uvicorn with a time limit for a request's head: uvicorn itself waits for ever."""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """Closes after ``headers_s`` without the whole head of a request."""

    headers_s: ClassVar[float] = 10.0

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._too_slow: asyncio.TimerHandle | None = None
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            self._expect_head()
        else:
            self._head_is_there()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_is_there()
        super().connection_lost(exc)

    def _expect_head(self) -> None:
        """Start the limit at the first byte or at connecting; further bytes do not extend it."""
        if self._too_slow is None:
            self._too_slow = self.loop.call_later(self.headers_s, self._end)

    def _head_is_there(self) -> None:
        if self._too_slow is not None:
            self._too_slow.cancel()
            self._too_slow = None

    def _end(self) -> None:
        self._too_slow = None
        if not self.transport.is_closing() and self.conn.their_state is h11.IDLE:
            self.transport.close()


def connection_class(headers_s: float) -> type[Connection]:
    """One with that limit."""
    return type("Connection", (Connection,), {"headers_s": headers_s})
