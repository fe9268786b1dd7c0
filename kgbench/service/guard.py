"""Checks before all routes: authentication, size and duration of a request. ASGI, so no body is read before that."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kgbench.core.errors import KgbenchError
from kgbench.service.access import Access
from kgbench.service.answers import refused
from kgbench.service.errors import ServiceError

_SECURE = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cache-control", b"no-store"),
)
"""Headers of every answer: a browser never interprets what a candidate wrote as another type of content."""
OnAnswer = Callable[[str, int, str], None]
"""Told of the method, the status and the error's number (else empty) of every answer."""


class Guard:
    """Refuses forbidden requests. The others have ``scope["state"]["caller"]``."""

    def __init__(
        self, app: ASGIApp, *, access: Access, max_body_bytes: int, body_s: float, on_answer: OnAnswer
    ) -> None:
        self._app = app
        self._access = access
        self._max_body_bytes = max_body_bytes
        self._body_s = body_s
        self._on_answer = on_answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = list(message.get("headers", ()))
                there = {name for name, _ in headers}
                message["headers"] = headers + [each for each in _SECURE if each[0] not in there]
                number = next((value.decode() for name, value in headers if name == b"x-kgbench-error"), "")
                self._on_answer(scope["method"], message["status"], number)
            await send(message)

        try:
            headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
            # It reads the database, where another process may be writing.
            caller = await run_in_threadpool(self._access.caller, scope["method"], headers)
            body = await self._body(headers, receive)
        except KgbenchError as error:
            # The rest of the body is not waited for.
            response = refused(error)
            response.headers["Connection"] = "close"
            await response(scope, receive, answer)
            return
        scope.setdefault("state", {})["caller"] = caller
        await self._app(scope, _replayed(body, receive), answer)

    async def _body(self, headers: dict[str, str], receive: Receive) -> bytes:
        """Read the whole body. Raises ServiceError where it is too large or too slow."""
        self._check_size(int(headers["content-length"]) if headers.get("content-length", "").isdigit() else 0)
        parts: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._body_s):
                while True:
                    message: Any = await receive()
                    if message["type"] == "http.disconnect":
                        raise ServiceError("KGB715", "the connection ended before the request did", 400)
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    self._check_size(size)
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            words = f"the body was not there after {self._body_s:g} s; send it at once"
            raise ServiceError("KGB715", words, 408) from None

    def _check_size(self, size: int) -> None:
        if size > self._max_body_bytes:
            words = f"the request's body has more than {self._max_body_bytes} bytes; submit fewer kernels at once"
            raise ServiceError("KGB718", words, 413)


def _replayed(body: bytes, receive: Receive) -> Receive:
    """The body that was read already; then whatever comes, which is the end of the connection."""
    given = False

    async def again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
