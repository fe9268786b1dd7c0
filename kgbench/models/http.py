"""Shared by the providers that ask over HTTP through an SDK.

Each call runs in a thread of its own: an SDK sleeps between its retries and blocks while it reads, and nothing else
could end that in time. The asking thread waits for the reply, for the deadline, or for ``close``.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import socket
import threading
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from kgbench.core.addresses import is_loopback
from kgbench.llm.conversation import ModelClient, NotAnswered, Question, Reply, Sampling, Stop, Unanswerable, Usage
from kgbench.models.provider import ModelError

RETRIES: Final = 4
"""Retries of one request by the SDK: it waits 0.5, 1, 2 and 4 s, or as long as the server says."""
CONNECT_TIMEOUT_S: Final = 15.0
"""Seconds to connect to a server; a reply has a limit of its own."""
THINKING: Final = ("off", "low", "medium", "high")
SHORTEST_KEY: Final = 8
"""Fewest characters of a key; a shorter text is a placeholder such as `none` or `EMPTY`."""
WORDS: Final = 300
"""Characters of a server's message that are passed on."""

# In what a server says: words that are a key, whole or with its middle starred out.
_KEYS: Final = re.compile(r"\b(sk|key|pk)-[\w*.-]{6,}|\b(Bearer|Basic)\s+\S+", re.IGNORECASE)
# Which option a refusal is about that would meet every request. A prompt that is too long has words of its own.
_OPTIONS: Final = {
    "temperature": re.compile(r"temperature", re.IGNORECASE),
    "thinking": re.compile(r"thinking|effort", re.IGNORECASE),
    "max_tokens": re.compile(r"max_(output_|completion_)?tokens", re.IGNORECASE),
}
_TOO_LONG: Final = re.compile(r"context|prompt|input length", re.IGNORECASE)
_ACCOUNT: Final = re.compile(r"credit balance|insufficient_quota|billing", re.IGNORECASE)
_LATER: Final = frozenset({200, 408, 409, 425, 429})
"""Refusals that say nothing of the question; 200: the error came in the middle of a reply."""


class NotFound(ModelError):
    """What was asked for is not there: a model, or a batch."""


class Closed(Exception):
    """``close`` was called while somebody waited."""


class TimedOut(Exception):
    """No end within the time for one reply."""


class Over(Exception):
    """The call was abandoned: no further request of it may be sent."""


@dataclass
class Draft:
    """The part of a reply received so far; written by the thread of its call."""

    model_id: str
    pieces: list[str] = field(default_factory=list)
    stop: Stop | None = None
    """None: the provider has not said yet."""
    usage: Usage = field(default_factory=Usage)
    detail: str = ""
    response: Any = None
    """The SDK's HTTP response, while it is read."""
    over: bool = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def drop(self) -> None:
        """Abandon the reply: close the connection, so that the provider stops writing and charging."""
        self.over = True
        with contextlib.suppress(Exception):  # whatever state the connection is in, it ends with its thread
            stream = self.response.extensions["network_stream"]
            stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)


class Calls:
    """Calls under way, each in a daemon thread, so that a process can end although one of them blocks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[SimpleQueue[Exception | None]] = set()
        self._thread = threading.local()
        self.closed = threading.Event()

    def run(self, work: Callable[[], None], draft: Draft, timeout_s: float) -> Exception | None:
        """What ended ``work``: None, its own exception, ``TimedOut`` or ``Closed``."""
        box: SimpleQueue[Exception | None] = SimpleQueue()
        with self._lock:
            if self.closed.is_set():
                return Closed()
            self._waiting.add(box)
        threading.Thread(target=self._work, args=(work, draft, box), name="kgbench-ask", daemon=True).start()
        try:
            ended = box.get(timeout=timeout_s)
        except Empty:
            ended = TimedOut(f"no end within {timeout_s:g} s")
        with self._lock:
            self._waiting.discard(box)
        if isinstance(ended, TimedOut | Closed):
            draft.drop()
        return ended

    def close(self) -> None:
        with self._lock:
            self.closed.set()
            for box in self._waiting:
                box.put(Closed())

    def refuse_over(self, request: object) -> None:
        """For the SDK's HTTP client, before each request: the retries of a call that nobody waits for are not sent."""
        draft = getattr(self._thread, "draft", None)
        if self.closed.is_set() or (draft is not None and draft.over):
            raise Over

    def _work(self, work: Callable[[], None], draft: Draft, box: SimpleQueue[Exception | None]) -> None:
        self._thread.draft = draft
        try:
            work()
        except Exception as error:  # of an SDK, of its HTTP library or its JSON: sorted by whoever waits
            box.put(error)
        else:
            box.put(None)


@dataclass
class HttpClient(ModelClient):
    """An ``ModelClient`` that uses an SDK; see ``kgbench.llm.conversation``."""

    model: str
    model_id: str
    package: ClassVar[str]
    """The SDK's module, which is also its name for pip."""

    def __post_init__(self) -> None:
        self._calls = Calls()
        self._making = threading.Lock()
        self._made: Any = None

    @abstractmethod
    def secrets(self) -> Sequence[str]:
        """Texts that no message may contain."""

    @abstractmethod
    def check_key(self) -> None:
        """Raises ModelError with the line to type when there is none."""

    @abstractmethod
    def new_client(self, sdk: Any, http_client: Any) -> Any:
        """The SDK's client."""

    @abstractmethod
    def request(self, question: Question) -> dict[str, Any]:
        """One question's parameters. Raises ModelError when the model does not take them."""

    @abstractmethod
    def stream(self, request: dict[str, Any], timeout: Any, draft: Draft) -> None:
        """Asks, and fills ``draft`` as the reply comes."""

    def ready(self) -> None:
        """As ``ModelClient``'s."""
        if importlib.util.find_spec(self.package) is None:
            raise ModelError(
                "KGB530",
                f"--model {self.model}: the package {self.package} is not installed here. "
                "Type: pip install 'kgbench[models]'",
            )
        self.check_key()

    def ask(self, question: Question) -> Reply:
        """As ``ModelClient``'s."""
        self.ready()
        sampling = question.sampling
        check_thinking(self.model, sampling)
        request, draft = self.request(question), Draft(self.model_id)
        begun = time.monotonic()
        failure = self._calls.run(
            lambda: self.stream(request, self.timeout(sampling), draft), draft, sampling.timeout_s
        )
        seconds = time.monotonic() - begun
        if isinstance(failure, Closed):
            raise NotAnswered("not waited for: the run was ended")
        if failure is None and draft.stop is not None:
            return self.reply(draft, draft.stop, draft.detail, seconds)
        why = self.words(failure) if failure else "the reply broke off without an end mark"
        if draft.text:
            return self.reply(draft, Stop.CUT_OFF, why, seconds)
        raise self.refusal(failure, sampling) if failure else NotAnswered(why)

    def close(self) -> None:
        """As ``ModelClient``'s."""
        self._calls.close()
        if self._made is not None:
            with contextlib.suppress(Exception):  # a pool that is being used in another thread may say so
                self._made.close()

    @property
    def client(self) -> Any:
        """The SDK's, made when it is first needed."""
        with self._making:
            if self._made is None:
                sdk = importlib.import_module(self.package)
                hooks = {"request": [self._calls.refuse_over]}
                self._made = self.new_client(sdk, sdk.DefaultHttpxClient(event_hooks=hooks))
            return self._made

    def timeout(self, sampling: Sampling) -> Any:
        """For the SDK: between two bytes; for all of them together ``Calls`` counts the time."""
        return importlib.import_module(self.package).Timeout(sampling.timeout_s, connect=CONNECT_TIMEOUT_S)

    def reply(self, draft: Draft, stop: Stop, detail: str, seconds: float) -> Reply:
        return Reply(draft.text, draft.model_id, stop, draft.usage, seconds, detail=self.scrubbed(detail))

    def refusal(self, error: Exception, sampling: Sampling) -> ModelError | NotAnswered | Unanswerable:
        """Which of the three an SDK's exception is."""
        status = getattr(error, "status_code", None)
        if isinstance(error, TypeError):
            return ModelError(
                "KGB530",
                f"--model {self.model}: the {self.package} installed here takes no such request: {self.words(error)}. "
                "Type: pip install --upgrade 'kgbench[models]'",
            )
        if status is None:
            return NotAnswered(self.words(error))
        return self.judged(status, self.words(error), str(getattr(error, "code", None) or ""), sampling)

    def judged(self, status: int, words: str, code: str, sampling: Sampling) -> ModelError | NotAnswered | Unanswerable:
        """By the status of HTTP, and where that is not enough by what the server says."""
        if status in (401, 402, 403) or _ACCOUNT.search(f"{code} {words}"):
            return ModelError("KGB534", f"--model {self.model}: {words}. {self.key_advice}")
        if status == 404:
            return NotFound(
                "KGB535", f"--model {self.model}: {words}. Is {self.model_id!r} the id of a model that is served there?"
            )
        if status in _LATER or status >= 500:
            return NotAnswered(words)
        if option := refused_option(words, sampling):
            return ModelError(
                "KGB536",
                f"--model {self.model}: {words}. Change or leave out --{option}: every request would be refused",
            )
        return Unanswerable(words)

    key_advice: ClassVar[str] = "Look at the key and at the account it belongs to"

    def words(self, error: Exception) -> str:
        """An exception in one line, without a key."""
        body = getattr(error, "body", None)
        inner = body.get("error", body) if isinstance(body, dict) else None
        message = inner.get("message") if isinstance(inner, dict) else None
        said = self.scrubbed(" ".join(str(message or error or type(error).__name__).split()))
        status = getattr(error, "status_code", None)
        front = f"{self.host} answered {status}: " if status not in (None, 200) else ""
        return front + (said if len(said) <= WORDS else said[:WORDS] + "…")

    @property
    @abstractmethod
    def host(self) -> str:
        """Who answers, for messages."""

    def scrubbed(self, text: str) -> str:
        for secret in self.secrets():
            if len(secret) >= SHORTEST_KEY:
                text = text.replace(secret, "[key]")
        return _KEYS.sub("[key]", text)


def check_thinking(model: str, sampling: Sampling) -> None:
    if sampling.thinking is not None and sampling.thinking not in THINKING:
        raise ModelError(
            "KGB533", f"--model {model}: --thinking {sampling.thinking}: write one of {', '.join(THINKING)}"
        )


def refused_option(words: str, sampling: Sampling) -> str | None:
    """The option of the command line that a refusal is about, if it was given."""
    given = {"temperature": sampling.temperature, "thinking": sampling.thinking, "max_tokens": sampling.max_tokens}
    for name, pattern in _OPTIONS.items():
        if given[name] is None or not pattern.search(words):
            continue
        if name != "max_tokens" or not _TOO_LONG.search(words):
            return name.replace("_", "-")
    return None


def endpoint_of(url: str, own_host: str, own_name: str) -> str:
    """The price table's key for ``url``: ``own_name`` at ``own_host``, none on this machine, else the host's."""
    host = host_of(url)
    if is_this_machine(host):
        return ""
    return own_name if host == own_host else host


def host_of(url: str) -> str:
    return urlsplit(url).hostname or ""


def is_this_machine(host: str) -> bool:
    return host.endswith(".localhost") or is_loopback(host)


def environment(*names: str) -> str:
    """The first of these variables that is set and not empty, or an empty text."""
    return next((os.environ[name] for name in names if os.environ.get(name)), "")


def named_model(name: str, argument: str | None, example: str) -> str:
    """What stands after the colon. Raises ModelError when nothing does."""
    if not argument:
        raise ModelError(
            "KGB532", f"--model {name}: name the model after a colon, for example --model {name}:{example}"
        )
    return argument
