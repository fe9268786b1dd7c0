"""Passes events of submissions from the threads that judge to the coroutines that answer."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator
from typing import Final

from kgbench.service.errors import ServiceError

MOST_WAITING: Final = 256
"""Polls that wait and streams that one caller may have at once."""
_PENDING: Final = 1000
"""Events that one listener may be behind; further ones are dropped, since the database has the truth."""
Event = tuple[str, str]
"""(a submission's id, what happened: a phase, or ``done``)."""
_Listeners = dict[str, set["asyncio.Queue[Event]"]]


class Changes:
    """Events by topic: a submission's id, or a batch's. Listening is for the event loop's thread only."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._listeners: _Listeners = {}
        self._waiting: Counter[str] = Counter()
        self.closing = asyncio.Event()

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def tell(self, submission: str, batch: str | None, what: str) -> None:
        """Send an event, from any thread."""
        if self._loop is not None:
            # The loop may be closed by now, and with it everybody who waited.
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._tell, submission, batch, what)

    def _tell(self, submission: str, batch: str | None, what: str) -> None:
        for topic in filter(None, (submission, batch)):
            for listener in self._listeners.get(topic, ()):
                with contextlib.suppress(asyncio.QueueFull):
                    listener.put_nowait((submission, what))

    def close(self) -> None:
        """End all waiting; called on the loop's thread."""
        self.closing.set()
        for listeners in self._listeners.values():
            for listener in listeners:
                with contextlib.suppress(asyncio.QueueFull):
                    listener.put_nowait(("", "closing"))

    @property
    def waiting(self) -> int:
        return sum(self._waiting.values())

    @contextlib.contextmanager
    def listen(self, topic: str, owner: str) -> Iterator[asyncio.Queue[Event]]:
        """Events of a topic from now on. Raises ServiceError where the owner listens to too many."""
        if self._waiting[owner] >= MOST_WAITING:
            words = f"{owner} has {MOST_WAITING} requests that wait; poll without ?wait, or stream a whole batch"
            raise ServiceError("KGB713", words, 429, 5)
        listener: asyncio.Queue[Event] = asyncio.Queue(_PENDING)
        self._listeners.setdefault(topic, set()).add(listener)
        self._waiting[owner] += 1
        try:
            yield listener
        finally:
            self._waiting[owner] -= 1
            self._listeners[topic].discard(listener)
            if not self._listeners[topic]:
                del self._listeners[topic]


async def next_event(listener: asyncio.Queue[Event], seconds: float) -> Event | None:
    """The next event; None where none comes in this time."""
    try:
        return await asyncio.wait_for(listener.get(), seconds)
    except TimeoutError:
        return None
