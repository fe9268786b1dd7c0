"""Streamable HTTP: a socket, a token where others can reach it, and uvicorn."""

from __future__ import annotations

import hmac
import socket
from collections.abc import Awaitable, Callable
from typing import Any, Final

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from kgbench.core.addresses import is_loopback
from kgbench.core.errors import MachineError, UsageError

TOKEN_VARIABLE: Final = "KGBENCH_MCP_TOKEN"
"""Environment variable with the token: a command line can be read by every user of the machine."""
LEAST_TOKEN: Final = 16
"""Characters of a token at least."""
PATH: Final = "/mcp"
_CLOSING_S: Final = 2
"""Seconds that open streams have to end when the server is ended."""

_Receive = Callable[[], Awaitable[Any]]
_Send = Callable[[Any], Awaitable[None]]
_App = Callable[[Any, _Receive, _Send], Awaitable[None]]


def address(text: str) -> tuple[str, int]:
    """Host and port of ``[HOST:]PORT``; the host is loopback where none is said. Raises UsageError."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError("KGB177", f"--http {text}: expected PORT or HOST:PORT, for example --http 8765")
    return host.strip("[]") or "127.0.0.1", int(port)


def checked_token(host: str, token: str) -> str:
    """The token that every request must bring; empty where none is needed. Raises UsageError."""
    how = f"export {TOKEN_VARIABLE}=$(python -c 'import secrets; print(secrets.token_urlsafe(32))')"
    if token and len(token) < LEAST_TOKEN:
        raise UsageError("KGB177", f"{TOKEN_VARIABLE} has fewer than {LEAST_TOKEN} characters; {how}")
    if not token and not is_loopback(host):
        raise UsageError("KGB177", f"--http {host}: others can reach that address, and there is no token; {how}")
    return token


def listening(host: str, port: int) -> socket.socket:
    """A socket on that address. Raises MachineError where it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen()
    except OSError as error:
        made.close()
        words = f"cannot listen on {host}:{port}: {error.strerror}; give another port: --http PORT"
        raise MachineError("KGB343", words) from None
    return made


def serve(server: MCPServer[Any], host: str, token: str, bound: socket.socket) -> None:
    """Answers until a signal ends it."""
    local = [f"{name}:*" for name in ("127.0.0.1", "localhost", "[::1]")]
    security = TransportSecuritySettings(
        # A page in the user's browser must not reach the server by a name of its own; with a token it cannot anyway.
        enable_dns_rebinding_protection=is_loopback(host),
        allowed_hosts=local,
        allowed_origins=[f"http://{name}" for name in local],
    )
    app: _App = server.streamable_http_app(streamable_http_path=PATH, transport_security=security, host=host)
    config = uvicorn.Config(
        with_token(app, token) if token else app,
        log_level="warning",
        timeout_graceful_shutdown=_CLOSING_S,
        lifespan="on",
    )
    uvicorn.Server(config).run(sockets=[bound])


def with_token(app: _App, token: str) -> _App:
    """The application, for requests with ``Authorization: Bearer TOKEN`` only."""
    right = f"Bearer {token}".encode()

    async def guarded(scope: Any, receive: _Receive, send: _Send) -> None:
        if scope["type"] == "http":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, right):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": b"Authorization: Bearer TOKEN is missing or wrong\n"})
                return
        await app(scope, receive, send)

    return guarded
