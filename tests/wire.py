"""A real HTTP server on loopback that speaks the wire formats of models: what the SDKs are driven against.

    def answer(asked: Asked) -> Said | str:
        return "```python\\n…\\n```" if "softmax" in asked.text else Said(status=529)

    with WireServer(answer) as server:
        … f"openai-compatible:{server.url}#scripted" …
        assert server.requests[0].body["temperature"] == 0.5

It speaks Anthropic Messages and Message Batches, OpenAI Responses and Chat Completions, as streams of events where the
request asks for one. A token is a word. A system part that was sent before counts as read from the cache.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Final, Self

from kgbench.llm.conversation import Stop

PIECES: Final = 8
CREATED: Final = "2026-01-01T00:00:00Z"
CREATED_S: Final = 1_767_225_600
# What the three formats call the ways in which a reply ends; Responses has None where it is complete.
STOPS: Final[dict[Stop, tuple[str, str | None, str]]] = {
    Stop.END: ("end_turn", None, "stop"),
    Stop.MAX_TOKENS: ("max_tokens", "max_output_tokens", "length"),
    Stop.REFUSED: ("refusal", "content_filter", "content_filter"),
}
# Codes with which a response of OpenAI's fails; any other error is an event of its own.
FAILED: Final = frozenset({"server_error", "rate_limit_exceeded", "invalid_prompt"})
ERROR_TYPES: Final = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


@dataclass(frozen=True)
class Said:
    """One scripted answer, and what goes wrong on its way."""

    text: str = ""
    thinking: str = ""
    stop: Stop = Stop.END
    model: str | None = None
    """The id that answered, where it is not the one asked for."""
    usage: bool = True
    status: int = 200
    message: str = "as scripted"
    """Of an error."""
    param: str | None = None
    """Which parameter an error of OpenAI's is about."""
    code: str | None = None
    """Of an error of OpenAI's."""
    retry_after_s: float = 0.01
    """How long an SDK is told to wait after an error; 0: it is told nothing."""
    wait_s: float = 0.0
    """Before the first byte."""
    pause_s: float = 0.0
    """Before each event of a stream."""
    cut_off_after: int | None = None
    """Bytes of the body after which the connection is lost."""
    ends_after: int | None = None
    """Events of a stream after which it ends as if nothing were missing."""
    error_in_stream: str = ""
    """Type of an error that comes in place of the second half of the text."""
    malformed: bool = False
    """An event that is no JSON comes in place of the second half of the text."""
    raw: str | None = None
    """The whole body, with status ``status`` and of type text/html."""
    batch: str = "succeeded"
    """Or ``expired``, ``canceled``, ``missing``: the result of a request in a batch whose status is 200."""


@dataclass(frozen=True)
class Asked:
    """One request, or one of a batch."""

    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: dict[str, Any]
    number: int
    """From 0, in the order of arrival."""
    at_s: float = field(default_factory=time.monotonic)

    @property
    def wire(self) -> str:
        """``messages``, ``responses`` or ``completions``."""
        return "messages" if "/batches" in self.path else self.path.rsplit("/", 1)[-1]

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def system(self) -> str:
        if self.wire == "responses":
            return str(self.body.get("instructions") or "")
        if self.wire == "messages":
            return _plain(self.body.get("system", ""))
        return "\n".join(_plain(each["content"]) for each in self._messages if each["role"] == "system")

    @property
    def turns(self) -> list[str]:
        """What the user and the model said, the user first."""
        return [_plain(each["content"]) for each in self._messages if each["role"] != "system"]

    @property
    def text(self) -> str:
        """All that was sent, as one text."""
        return "\n\n".join((self.system, *self.turns))

    @property
    def _messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("input" if self.wire == "responses" else "messages", []))


@dataclass
class Tokens:
    fresh: int
    cached: int
    written: int
    out: int


Answer = Callable[["Asked"], "Said | str"]
Event = tuple[str, dict[str, Any]]


class WireServer:
    """Runs in threads of this process for as long as its context; ``url`` has no path."""

    def __init__(self, answer: Answer, *, batch_polls: int = 2) -> None:
        """``batch_polls``: how often a batch says that it is in progress."""
        self.answer = answer
        self.batch_polls = batch_polls
        self.requests: list[Asked] = []
        """Those that ``answer`` was asked about, the ones in batches among them."""
        self.batches: dict[str, Batch] = {}
        self.hung_up = 0
        """Connections that a client ended while it was still being answered."""
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._seen: set[str] = set()
        handler = type("WireHandler", (Handler,), {"wire": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def ask(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> tuple[Asked, Said]:
        with self._lock:
            asked = Asked(path, headers, body, len(self.requests))
            self.requests.append(asked)
        said = self.answer(asked)
        return asked, Said(said) if isinstance(said, str) else said

    def tokens(self, asked: Asked, said: Said) -> Tokens:
        system, rest = _words(asked.system), sum(map(_words, asked.turns))
        with self._lock:
            cached = asked.system in self._seen
            self._seen.add(asked.system)
        out = _words(said.text) + _words(said.thinking)
        if asked.wire == "messages" and '"cache_control"' not in json.dumps(asked.body.get("system", "")):
            return Tokens(system + rest, 0, 0, out)
        return Tokens(rest, system if cached else 0, 0 if cached else system, out)


# --- what each format makes of an answer -----------------------------------------------------------------------------


def messages_events(asked: Asked, said: Said, tokens: Tokens) -> Iterator[Event]:
    """Anthropic's, as its documentation lists them; the last usage is the whole one."""
    start = message_body(asked, said, tokens) | {"content": [], "stop_reason": None}
    start["usage"] = start["usage"] | {"output_tokens": 1}
    yield "message_start", {"message": start}
    yield "ping", {}
    index = itertools.count()
    if said.thinking:
        at = next(index)
        yield (
            "content_block_start",
            {"index": at, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
        )
        for piece in _pieces(said.thinking):
            yield "content_block_delta", {"index": at, "delta": {"type": "thinking_delta", "thinking": piece}}
        yield "content_block_delta", {"index": at, "delta": {"type": "signature_delta", "signature": "c2ln"}}
        yield "content_block_stop", {"index": at}
    at = next(index)
    yield "content_block_start", {"index": at, "content_block": {"type": "text", "text": ""}}
    for piece in _pieces(said.text):
        yield "content_block_delta", {"index": at, "delta": {"type": "text_delta", "text": piece}}
    yield "content_block_stop", {"index": at}
    delta = {"stop_reason": STOPS[said.stop][0], "stop_sequence": None, "stop_details": _stop_details(said)}
    yield "message_delta", {"delta": delta, "usage": {"output_tokens": tokens.out}}
    yield "message_stop", {}


def message_body(asked: Asked, said: Said, tokens: Tokens) -> dict[str, Any]:
    """Anthropic's reply as one object."""
    content: list[dict[str, Any]] = [{"type": "text", "text": said.text}] if said.text else []
    if said.thinking:
        content.insert(0, {"type": "thinking", "thinking": said.thinking, "signature": "c2ln"})
    return {
        "id": f"msg_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": said.model or asked.model,
        "content": content,
        "stop_reason": STOPS[said.stop][0],
        "stop_sequence": None,
        "stop_details": _stop_details(said),
        "usage": {
            "input_tokens": tokens.fresh,
            "cache_read_input_tokens": tokens.cached,
            "cache_creation_input_tokens": tokens.written,
            "output_tokens": tokens.out,
        },
    }


def responses_events(asked: Asked, said: Said, tokens: Tokens) -> Iterator[Event]:
    """OpenAI's Responses; the last event has the whole response, with its usage."""
    done = response_body(asked, said, tokens)
    begun = done | {"status": "in_progress", "output": [], "usage": None, "incomplete_details": None}
    numbers = itertools.count()

    def event(kind: str, **keys: Any) -> Event:
        return kind, {"sequence_number": next(numbers), **keys}

    yield event("response.created", response=begun)
    yield event("response.in_progress", response=begun)
    place = {"item_id": "msg_0", "output_index": 0, "content_index": 0}
    yield event("response.output_item.added", output_index=0, item=done["output"][0] | {"content": []})
    for piece in _pieces(said.text):
        yield event("response.output_text.delta", **place, delta=piece, logprobs=[])
    yield event("response.output_text.done", **place, text=said.text, logprobs=[])
    yield event("response.output_item.done", output_index=0, item=done["output"][0])
    yield event("response.incomplete" if STOPS[said.stop][1] else "response.completed", response=done)


def response_body(asked: Asked, said: Said, tokens: Tokens) -> dict[str, Any]:
    why = STOPS[said.stop][1]
    part = {"type": "output_text", "text": said.text, "annotations": [], "logprobs": []}
    message = {"id": "msg_0", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    usage = {
        "input_tokens": tokens.fresh + tokens.cached + tokens.written,
        "input_tokens_details": {"cached_tokens": tokens.cached, "cache_write_tokens": tokens.written},
        "output_tokens": tokens.out,
        "output_tokens_details": {"reasoning_tokens": _words(said.thinking)},
        "total_tokens": tokens.fresh + tokens.cached + tokens.written + tokens.out,
    }
    return {
        "id": f"resp_{asked.number}",
        "object": "response",
        "created_at": CREATED_S,
        "status": "incomplete" if why else "completed",
        "incomplete_details": {"reason": why} if why else None,
        "error": None,
        "model": said.model or asked.model,
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage if said.usage else None,
    }


def chat_events(asked: Asked, said: Said, tokens: Tokens) -> Iterator[Event]:
    """Chat Completions: events without names; usage in a chunk of its own, where it was asked for."""
    base = {
        "id": f"chatcmpl-{asked.number}",
        "object": "chat.completion.chunk",
        "created": CREATED_S,
        "model": said.model or asked.model,
    }

    def chunk(delta: dict[str, str], finish: str | None = None) -> Event:
        return "", {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(said.thinking):
        yield chunk({"reasoning_content": piece})
    for piece in _pieces(said.text):
        yield chunk({"content": piece})
    yield chunk({}, STOPS[said.stop][2])
    if said.usage and asked.body.get("stream_options", {}).get("include_usage"):
        prompt = tokens.fresh + tokens.cached + tokens.written
        usage = {
            "prompt_tokens": prompt,
            "completion_tokens": tokens.out,
            "total_tokens": prompt + tokens.out,
            "prompt_tokens_details": {"cached_tokens": tokens.cached},
        }
        yield "", {**base, "choices": [], "usage": usage}


EVENTS: Final = {"messages": messages_events, "responses": responses_events, "completions": chat_events}


def error_body(asked: Asked, said: Said) -> dict[str, Any]:
    kind = ERROR_TYPES.get(said.status, "api_error")
    if asked.wire == "messages":
        error = {"type": kind, "message": said.message, "details": None}
        return {"type": "error", "error": error, "request_id": f"req_{asked.number}"}
    return {"error": {"message": said.message, "type": kind, "param": said.param, "code": said.code}}


def stream_body(asked: Asked, said: Said, tokens: Tokens) -> Iterator[bytes]:
    """Event by event, with what goes wrong in place of the second half of the text."""
    deltas = 0
    breaks = (said.malformed or said.error_in_stream) and len(_pieces(said.text)) // 2 + 1
    for count, (name, data) in enumerate(EVENTS[asked.wire](asked, said, tokens)):
        if count == said.ends_after:
            return
        deltas += _is_text(data)
        if breaks and (deltas == breaks or not said.text):
            yield _broken(asked, said)
            return
        typed = {"type": name, **data} if name else data
        yield _event(name, json.dumps(typed))
    if asked.wire == "completions":
        yield _event("", "[DONE]")


def _broken(asked: Asked, said: Said) -> bytes:
    if said.malformed:
        return _event("content_block_delta" if asked.wire == "messages" else "", '{"type": "content_blo')
    if asked.wire == "responses" and said.error_in_stream in FAILED:
        error = {"code": said.error_in_stream, "message": said.message}
        body = response_body(asked, said, Tokens(0, 0, 0, 0))
        failed = body | {"status": "failed", "error": error, "output": [], "usage": None}
        name = "response.failed"
        return _event(name, json.dumps({"type": name, "sequence_number": 99, "response": failed}))
    if asked.wire == "responses":
        keys = {"type": "error", "code": said.error_in_stream, "message": said.message, "param": None}
        return _event("error", json.dumps({**keys, "sequence_number": 99}))
    error = {"type": said.error_in_stream, "message": said.message}
    return _event("error" if asked.wire == "messages" else "", json.dumps({"type": "error", "error": error}))


def _event(name: str, data: str) -> bytes:
    return (f"event: {name}\n" if name else "").encode() + f"data: {data}\n\n".encode()


def _is_text(data: dict[str, Any]) -> bool:
    delta = data.get("delta")
    choices = data.get("choices") or [{}]
    return isinstance(delta, str) or "text" in (delta or {}) or bool(choices[0].get("delta", {}).get("content"))


def _stop_details(said: Said) -> dict[str, Any] | None:
    return {"type": "refusal", "category": "cyber", "explanation": said.message} if said.stop is Stop.REFUSED else None


def _plain(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _words(text: str) -> int:
    return len(text.split())


def _pieces(text: str) -> list[str]:
    """At most ``PIECES`` of about the same length, never an empty one."""
    size = -(-len(text) // PIECES) or 1
    return [text[at : at + size] for at in range(0, len(text), size)]


# --- batches ---------------------------------------------------------------------------------------------------------


@dataclass
class Batch:
    """One of Anthropic's Message Batches."""

    id: str
    url: str
    lines: list[dict[str, Any]]
    polls_left: int
    ended: bool = False

    def poll(self) -> None:
        self.ended = self.ended or self.polls_left <= 0
        self.polls_left -= 1

    @property
    def body(self) -> dict[str, Any]:
        kinds = [line["result"]["type"] for line in self.lines]
        done = {
            name: kinds.count(name) if self.ended else 0 for name in ("succeeded", "errored", "canceled", "expired")
        }
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": "ended" if self.ended else "in_progress",
            "request_counts": {"processing": 0 if self.ended else len(kinds), **done},
            "created_at": CREATED,
            "expires_at": CREATED,
            "ended_at": CREATED if self.ended else None,
            "cancel_initiated_at": None,
            "archived_at": None,
            "results_url": f"{self.url}/v1/messages/batches/{self.id}/results" if self.ended else None,
        }


def batch_line(server: WireServer, custom_id: str, asked: Asked, said: Said) -> dict[str, Any]:
    result: dict[str, Any] = {"type": said.batch}
    if said.status != 200:
        result = {"type": "errored", "error": error_body(asked, said)}
    elif said.batch == "succeeded":
        result["message"] = message_body(asked, said, server.tokens(asked, said))
    return {"custom_id": custom_id, "result": result}


# --- HTTP ------------------------------------------------------------------------------------------------------------


class Handler(BaseHTTPRequestHandler):
    wire: ClassVar[WireServer]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a test prints what it needs."""

    def handle(self) -> None:
        try:
            super().handle()
        except (ConnectionError, TimeoutError):
            self.wire.hung_up += 1

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        path = self.path.partition("?")[0].rstrip("/")
        if path.endswith("/messages/batches"):
            self._new_batch(path, body)
        elif path.rsplit("/", 1)[-1] in EVENTS:
            self._reply(*self.wire.ask(path, self._headers(), body))
        else:
            self._nothing_here()

    def do_GET(self) -> None:
        parts = self.path.partition("?")[0].strip("/").split("/")
        batch = self.wire.batches.get(parts[3]) if parts[:3] == ["v1", "messages", "batches"] and parts[3:] else None
        if batch is None:
            self._nothing_here()
        elif parts[4:] == ["results"]:
            lines = [line for line in batch.lines if line["result"]["type"] != "missing"]
            self._send(200, "".join(json.dumps(line) + "\n" for line in lines), "application/x-jsonl")
        else:
            batch.poll()
            self._send(200, json.dumps(batch.body))

    def _new_batch(self, path: str, body: dict[str, Any]) -> None:
        pairs = []
        for each in body["requests"]:
            pairs.append((each["custom_id"], *self.wire.ask(path, self._headers(), each["params"])))
        lines = [batch_line(self.wire, *pair) for pair in reversed(pairs)]
        name = f"msgbatch_{len(self.wire.batches)}"
        self.wire.batches[name] = batch = Batch(name, self.wire.url, lines, self.wire.batch_polls)
        self._send(200, json.dumps(batch.body))

    def _reply(self, asked: Asked, said: Said) -> None:
        self.wire.closing.wait(said.wait_s)
        if said.raw is not None:
            self._send(said.status, said.raw, "text/html")
        elif said.status != 200:
            waits = {"retry-after-ms": str(round(said.retry_after_s * 1000))} if said.retry_after_s else {}
            self._send(said.status, json.dumps(error_body(asked, said)), **waits)
        elif asked.body.get("stream"):
            self._stream(said, stream_body(asked, said, self.wire.tokens(asked, said)))
        else:
            self._send(200, json.dumps(message_body(asked, said, self.wire.tokens(asked, said))))

    def _stream(self, said: Said, events: Iterator[bytes]) -> None:
        """In chunks, so that a client can tell an end from a lost connection."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        left = said.cut_off_after
        for event in events:
            self.wire.closing.wait(said.pause_s)
            piece = event if left is None else event[:left]
            if piece:
                self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            if left is not None:
                left -= len(piece)
                if not left:
                    self.close_connection = True
                    return
        self.wfile.write(b"0\r\n\r\n")

    def _nothing_here(self) -> None:
        self._send(404, json.dumps({"detail": f"nothing at {self.path}"}))

    def _send(self, status: int, body: str, kind: str = "application/json", **headers: str) -> None:
        data = body.encode()
        self.send_response(status, "Scripted")
        for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _headers(self) -> dict[str, str]:
        return {name.lower(): value for name, value in self.headers.items()}
