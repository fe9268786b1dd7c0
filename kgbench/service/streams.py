"""Server-sent events of submissions and batches. Their content comes from the database."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final

from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from kgbench.service.answers import status_json
from kgbench.service.changes import next_event
from kgbench.service.errors import ServiceError
from kgbench.service.state import Service
from kgbench.service.tokens import Caller

_BEAT_S: Final = 5.0
"""Seconds between two signs of life, and between two looks at the token."""


def answer(events: AsyncIterator[str]) -> StreamingResponse:
    return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def of_submission(service: Service, who: Caller, name: str) -> AsyncIterator[str]:
    """Ends with the verdict, or with the server."""
    try:
        with service.changes.listen(name, who.name) as listener:
            found = await run_in_threadpool(service.queue.get, name, who.name)
            if found.state != "done":
                yield _event("state", {"state": found.state})
            while found.state != "done":
                event = await next_event(listener, _BEAT_S)
                if event is None:
                    await run_in_threadpool(service.tokens.check, who)
                    yield ": still there\n\n"
                elif event[1] == "closing":
                    return
                elif event[1] != "done":
                    yield _event("phase", {"phase": event[1]})
                found = await run_in_threadpool(service.queue.get, name, who.name)
            yield _event("verdict", status_json(found), found.ended)
    except ServiceError as error:
        yield _event("error", error.to_json()["error"])


async def of_batch(service: Service, who: Caller, name: str, after: int) -> AsyncIterator[str]:
    """Each verdict once, in the order in which they came."""
    try:
        with service.changes.listen(name, who.name) as listener:
            while True:
                found = await run_in_threadpool(service.queue.batch, name, who.name, after)
                done = sorted((each for each in found if each.ended is not None), key=lambda each: each.ended or 0)
                for each in done:
                    yield _event("verdict", status_json(each), each.ended)
                    after = each.ended or after
                if len(done) == len(found):
                    yield _event("end", {"batch": name})
                    return
                if not await _something_is_done(service, who, listener):
                    yield ": still there\n\n"
                if service.changes.closing.is_set():
                    return
    except ServiceError as error:
        yield _event("error", error.to_json()["error"])


async def _something_is_done(service: Service, who: Caller, listener: Any) -> bool:
    event = await next_event(listener, _BEAT_S)
    if event is None:
        await run_in_threadpool(service.tokens.check, who)
    return event is not None


def _event(kind: str, data: Any, number: int | None = None) -> str:
    """One event. JSON has no line break, so a candidate's text cannot start another event."""
    head = f"id: {number}\n" if number is not None else ""
    return f"{head}event: {kind}\ndata: {json.dumps(data)}\n\n"
