"""Requests to a service that repeat while it is restarted or busy.

Standard library alone, so that a plain install of kgbench has them.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import threading
import time
from typing import Any, Final
from urllib.parse import urlsplit

from kgbench.core.errors import MachineError, UsageError
from kgbench.core.text import told
from kgbench.harness.session.errors import SessionClosed
from kgbench.service.errors import ServiceError, TokenRefused

TOKEN_VARIABLE: Final = "KGBENCH_TOKEN"
PATIENCE_S: Final = 120.0
"""Seconds for which a service may be gone, as while it is restarted."""
_TIMEOUT_S: Final = 60.0
"""Seconds without a byte of an answer; longer than any poll waits."""
_GONE_STATUS: Final = frozenset({502, 503, 504})
"""Statuses of a proxy whose server is gone, and of a server whose disk is full."""
_LATER: Final = _GONE_STATUS | {429}
_LONGEST_PAUSE_S: Final = 60.0
"""Longest pause before another attempt, in seconds, whatever the server asks for."""
_MOST_BYTES: Final = 256 << 20
"""Most bytes of an answer; a longer one is not from kgbench."""
_GONE = (OSError, http.client.HTTPException)


class Client:
    """One service. May be used from many threads; each has a connection of its own."""

    def __init__(self, url: str, token: str | None = None, *, patience_s: float = PATIENCE_S) -> None:
        """``token``: None takes KGBENCH_TOKEN; empty sends none. Raises UsageError for what is no address."""
        parts = urlsplit(url if "://" in url else f"http://{url}")
        try:
            port = parts.port
        except ValueError:
            port = -1
        wrong = parts.scheme not in ("http", "https") or not parts.hostname or port == -1
        if wrong or parts.username or parts.password or parts.query or parts.fragment:
            words = f"--server {_without_secret(url)}: expected http://HOST:PORT or https://HOST:PORT"
            raise UsageError("KGB730", f"{words}; the token goes into the variable {TOKEN_VARIABLE}")
        self.url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._address = (parts.scheme, parts.hostname or "", port, parts.path.rstrip("/"))
        self._token = os.environ.get(TOKEN_VARIABLE, "") if token is None else token
        self._patience_s = patience_s
        self._mine = threading.local()
        self._lock = threading.Lock()
        self._open: set[http.client.HTTPConnection] = set()
        self._asking: set[http.client.HTTPConnection] = set()
        self._closed = threading.Event()

    def close(self) -> None:
        """Requests of other threads raise SessionClosed."""
        self._closed.set()
        with self._lock:
            for connection in self._open - self._asking:
                connection.close()
            for connection in self._asking:
                # Its thread wakes up, and closes it.
                if connection.sock is not None:
                    with contextlib.suppress(OSError):
                        connection.sock.shutdown(socket.SHUT_RDWR)

    def pause(self, seconds: float) -> None:
        """Raises SessionClosed where ``close`` was called, also meanwhile."""
        if self._closed.wait(seconds):
            raise SessionClosed("KGB316", "the evaluator was closed before the service had answered")

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer. What it asks may be asked twice: every submission has a key.

        Raises TokenRefused, ServiceError with the service's number and words, MachineError where it cannot be reached.
        """
        gone_since: float | None = None
        pause_s = 0.2
        while True:
            self.pause(0)
            try:
                status, headers, text = self._once(method, path, body)
            except _GONE as error:
                self.pause(0)
                gone_since = self._still_patient(gone_since, told(error) or type(error).__name__)
                self.pause(pause_s)
                pause_s = min(2 * pause_s, 5.0)
                continue
            answer = self._read(status, text)
            if status < 400:
                return answer
            if status in _LATER:
                # A quota is a promise of room; of what is gone nobody knows whether it comes back.
                gone_since = self._still_patient(gone_since, _said(status, answer)) if status != 429 else None
                self.pause(_pause_of(headers.get("Retry-After", "")))
                continue
            said = answer["error"]
            kind = TokenRefused if status == 401 else ServiceError
            raise kind(str(said["number"]), str(said["message"]), status)

    def _still_patient(self, gone_since: float | None, words: str) -> float:
        """Check how long there was no answer. Raises MachineError where that is too long."""
        now = time.monotonic()
        gone_since = now if gone_since is None else gone_since
        if now - gone_since > self._patience_s:
            raise self._unreachable(words)
        return gone_since

    def _once(self, method: str, path: str, body: Any) -> tuple[int, http.client.HTTPMessage, bytes]:
        connection = self._connection()
        with self._lock:
            self._asking.add(connection)
        try:
            headers = {"Accept": "application/json", "User-Agent": "kgbench"}
            if self._token:
                headers["Authorization"] = f"Bearer {self._token}"
            data = None
            if body is not None:
                data = json.dumps(body).encode()
                headers["Content-Type"] = "application/json"
            connection.request(method, self._address[3] + path, data, headers)
            with connection.getresponse() as response:
                text = response.read(_MOST_BYTES)
                if response.length:
                    # Its server was killed while it answered; a read of so many bytes does not say so.
                    raise http.client.IncompleteRead(text, response.length)
                return response.status, response.headers, text
        except BaseException:
            self._forget(connection)
            raise
        finally:
            with self._lock:
                self._asking.discard(connection)
                if self._closed.is_set():
                    connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        found: http.client.HTTPConnection | None = getattr(self._mine, "connection", None)
        if found is None:
            scheme, host, port, _ = self._address
            kind = http.client.HTTPSConnection if scheme == "https" else http.client.HTTPConnection
            found = self._mine.connection = kind(host, port, timeout=_TIMEOUT_S)
            with self._lock:
                self._open.add(found)
        return found

    def _forget(self, connection: http.client.HTTPConnection) -> None:
        connection.close()
        self._mine.connection = None
        with self._lock:
            self._open.discard(connection)

    def _read(self, status: int, text: bytes) -> Any:
        try:
            answer = json.loads(text)
            if status >= 400 and status not in _LATER:
                answer["error"]["number"], answer["error"]["message"]
        except (ValueError, TypeError, KeyError):
            if status in _LATER:
                return None
            words = f"{self.url}: what answers there is no kgbench service: status {status}, {told(text[:200])}"
            raise MachineError("KGB731", words) from None
        return answer

    def _unreachable(self, words: str) -> MachineError:
        return MachineError(
            "KGB731",
            f"{self.url}: no answer for {self._patience_s:g} s: {words}; is the address right, and does "
            "kgbench serve run there? What was finished is kept: kgbench run --resume last goes on",
        )


def _said(status: int, answer: Any) -> str:
    """The error in words; the answer of a proxy is not in kgbench's form."""
    try:
        return f"{status}, {told(answer['error']['message'])}"
    except (TypeError, KeyError):
        return f"status {status}"


def _pause_of(retry_after: str) -> float:
    return min(float(retry_after), _LONGEST_PAUSE_S) if retry_after.isdigit() else 2.0


def _without_secret(url: str) -> str:
    """The address without its password, for messages."""
    return "***@" + url.rpartition("@")[2] if "@" in url else url
