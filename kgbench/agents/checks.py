"""Answers an agent's ``./check``: a Unix socket, a thread, one question after the other. What comes in is hostile.

A message is a kernel's text, whole, ended by shutting down that direction; the answer is one JSON object.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.llm.conversation import MAX_SOURCE_BYTES, Question

SEND_S: Final = 10.0
"""Seconds that one message may take, from connecting to its end; the next one waits meanwhile."""
_WAITING: Final = 64
"""Connections that may wait to be accepted."""
NOT_RIGHT, NOT_ASKED, NOBODY, TOO_OFTEN = 1, 2, 3, 4
"""Exit codes of ``./check`` beside 0."""
GENERATES_ONLY: Final = (
    "Nothing is judged here: this run only collects kernels, and they are judged later, on another machine. "
    "Check with inputs of your own; example_inputs.py has some."
)


class CheckServer:
    """Asks the run's referee for an agent, as often as the question allows, and counts the checks."""

    def __init__(self, path: Path, question: Question, words: Callable[[Result, str], str]) -> None:
        """``words``: what an agent is told of a result and its text. ``path``: of the socket."""
        self._question = question
        self._words = words
        self._begun = time.monotonic()
        self._checks: list[dict[str, Any]] = []
        self._refused = 0
        self._closed = False
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind(str(path))
        self._socket.listen(_WAITING)
        self._thread = threading.Thread(target=self._serve, name="agent-checks", daemon=True)
        self._thread.start()

    @property
    def facts(self) -> dict[str, Any]:
        """``checks``, one entry each, and how many were refused above the limit."""
        return {"checks": [dict(each) for each in self._checks], "checks_refused": self._refused}

    def close(self) -> None:
        """Accept no further question; one that is being judged goes on without an answer."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _serve(self) -> None:
        while not self._closed:
            try:
                channel, _ = self._socket.accept()
            except OSError:
                return
            with channel:
                try:
                    answer = self._answer(_message(channel))
                    channel.settimeout(SEND_S)
                    channel.sendall(json.dumps(answer).encode())
                except OSError:
                    # The agent closed the connection, or sent nothing: it gets no answer.
                    continue

    def _answer(self, message: bytes) -> dict[str, Any]:
        if self._question.judge is None:
            return {"code": NOBODY, "words": GENERATES_ONLY}
        if len(message) > MAX_SOURCE_BYTES:
            return {
                "code": NOT_ASKED,
                "words": f"The kernel has more than {MAX_SOURCE_BYTES} bytes; nothing was judged.",
            }
        try:
            text = message.decode()
        except UnicodeDecodeError:
            return {"code": NOT_ASKED, "words": "The kernel is not UTF-8 text; nothing was judged."}
        if not text.strip():
            return {"code": NOT_ASKED, "words": "The kernel is empty; nothing was judged."}
        if len(self._checks) >= self._question.checks:
            self._refused += 1
            words = f"All {self._question.checks} checks are used up. What kernel.py holds when you end is your answer."
            return {"code": TOO_OFTEN, "words": words}
        return self._judged(text, self._question.judge)

    def _judged(self, text: str, judge: Callable[[str], Result]) -> dict[str, Any]:
        check: dict[str, Any] = {
            "at_s": round(time.monotonic() - self._begun, 3),
            "sha256": hashlib.sha256(text.encode()).hexdigest(),
            "outcome": None,
        }
        self._checks.append(check)
        try:
            result = judge(text)
            words = self._words(result, text)
        except Exception as error:
            # The referee's trouble, which must not end the agent's work; the verdict will meet it again.
            check["error"] = f"{type(error).__name__}: {error}"
            return {"code": NOBODY, "words": "The referee did not answer. Continue without it, or try again."}
        check["outcome"] = str(result.outcome)
        left = self._question.checks - len(self._checks)
        limit = f"{left} of {self._question.checks} checks left."
        return {"code": 0 if result.outcome is Outcome.PASSED else NOT_RIGHT, "words": f"{words}\n{limit}"}


def _message(channel: socket.socket) -> bytes:
    """Read the whole message, up to just above the limit. Raises OSError when that takes too long."""
    deadline = time.monotonic() + SEND_S
    parts: list[bytes] = []
    size = 0
    while size <= MAX_SOURCE_BYTES:
        channel.settimeout(max(deadline - time.monotonic(), 0.001))
        part = channel.recv(1 << 16)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)
