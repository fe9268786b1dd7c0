"""The providers that ask over HTTP, through the official SDKs, against a real server on loopback."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from kgbench.llm.conversation import (
    ModelClient,
    NotAnswered,
    Prompt,
    Question,
    Reply,
    Sampling,
    Stop,
    Turn,
    Unanswerable,
    Usage,
)
from kgbench.models.provider import ModelError, provider_of
from kgbench.models.providers.anthropic import AnthropicClient
from kgbench.problem.registry import load_problem
from tests.wire import Asked, Said, WireServer

# The SDKs' import takes seconds, and once will do.
pytestmark = pytest.mark.xdist_group("wire")

KEY: Final = "0123456789abcdef-of-this-test"
TEXT: Final = "Here is the kernel:\n```python\ndef softmax(x):\n    return x\n```\nIt is right.\n"
SYSTEM: Final = "You write GPU kernels in Triton."
ROOT: Final = Path(__file__).resolve().parents[2]

PROVIDERS: Final = ("anthropic", "openai", "openai-compatible")
WIRES: Final = dict(zip(PROVIDERS, ("messages", "responses", "completions"), strict=True))


@pytest.fixture(scope="module", autouse=True)
def sdks() -> None:
    """A GPU machine without network does without them."""
    pytest.importorskip("anthropic", minversion="2.12")
    pytest.importorskip("openai", minversion="3.54")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of this test, and no proxy between it and its server."""
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENAI_COMPATIBLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    for name in ("ANTHROPIC_AUTH_TOKEN", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., WireServer]]:
    """Starts a server that says one thing, one thing after the other, or what a function of the request says."""
    servers: list[WireServer] = []

    def start(*said: Said | str | Callable[[Asked], Said | str], **settings: Any) -> WireServer:
        first = said[0]
        answer = first if callable(first) else lambda asked: said[min(asked.number, len(said) - 1)]
        server = WireServer(answer, **settings)
        servers.append(server)
        server.__enter__()
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        return server

    yield start
    for server in servers:
        server.__exit__(None, None, None)


@pytest.fixture
def asker_for(serve: Callable[..., WireServer]) -> Iterator[Callable[[str, WireServer], ModelClient]]:
    made: list[ModelClient] = []

    def make(provider: str, server: WireServer, model: str = "scripted") -> ModelClient:
        url = f"{server.url}#" if provider == "openai-compatible" else ""
        made.append(provider_of(f"{provider}:{url}{model}"))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for asker in made:
        asker.close()


def question(text: str = "Write aten/softmax.", **sampling: Any) -> Question:
    problem = load_problem(ROOT / "problems" / "aten" / "softmax.yaml")
    return Question(problem, 0, 0, Prompt(SYSTEM, (Turn("user", text),)), Sampling(**{"timeout_s": 20.0, **sampling}))


def refined() -> Question:
    """The second round: its own kernel and what became of it."""
    turns = (Turn("user", "Write aten/softmax."), Turn("assistant", "def softmax…"), Turn("user", "It is wrong."))
    return replace(question(), round=1, prompt=Prompt(SYSTEM, turns))


def until(there: Callable[[], object], at_most_s: float = 15.0) -> bool:
    end = time.monotonic() + at_most_s
    while not there() and time.monotonic() < end:
        time.sleep(0.01)
    return bool(there())


# --- what comes back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_reply_comes_back_whole_with_the_id_that_answered(provider: str, serve: Any, asker_for: Any) -> None:
    server = serve(Said(TEXT, thinking="Let me think of rows.", model="scripted-20260101"))
    begun = time.monotonic()
    reply = asker_for(provider, server).ask(question())
    assert (reply.text, reply.stop, reply.model_id, reply.batch) == (TEXT, Stop.END, "scripted-20260101", False)
    assert 0 < reply.seconds <= time.monotonic() - begun, "it lies within what passed here"
    # Words: 6 of the shared part, 2 of the question; 13 of the text and 5 of the thinking. Chat Completions has no word
    # for what is written to a cache.
    written = 0 if provider == "openai-compatible" else 6
    assert reply.usage == Usage(8 - written, 0, written, 18)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_second_question_reads_the_shared_part_from_the_cache(provider: str, serve: Any, asker_for: Any) -> None:
    asker = asker_for(provider, serve(TEXT))
    asker.ask(question())
    assert asker.ask(question("Write aten/mm now.")).usage == Usage(3, 6, 0, 13)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("stop", [Stop.END, Stop.MAX_TOKENS, Stop.REFUSED])
def test_why_a_reply_ended(provider: str, stop: Stop, serve: Any, asker_for: Any) -> None:
    reply = asker_for(provider, serve(Said(TEXT, stop=stop))).ask(question())
    assert (reply.stop, reply.text) == (stop, TEXT)


def test_a_refusal_says_which_kind_it_is(serve: Any, asker_for: Any) -> None:
    reply = asker_for("anthropic", serve(Said(stop=Stop.REFUSED, message="not this"))).ask(question())
    assert (reply.stop, reply.text, reply.detail) == (Stop.REFUSED, "", "refusal: cyber: not this")


def test_a_server_that_counts_no_tokens_has_none(serve: Any, asker_for: Any) -> None:
    reply = asker_for("openai-compatible", serve(Said(TEXT, usage=False))).ask(question())
    assert reply.usage == Usage()


# --- what is sent ----------------------------------------------------------------------------------------------------


def sent(provider: str, asked: Question, serve: Any, asker_for: Any, model: str = "scripted") -> dict[str, Any]:
    server = serve(TEXT)
    asker_for(provider, server, model).ask(asked)
    (request,) = server.requests
    assert request.wire == WIRES[provider]
    assert request.turns == [turn.text for turn in asked.prompt.turns]
    assert request.system == SYSTEM
    return request.body


def test_what_is_sent_to_anthropic(serve: Any, asker_for: Any) -> None:
    body = sent("anthropic", refined(), serve, asker_for)
    assert body["system"] == [{"type": "text", "text": SYSTEM, "cache_control": {"type": "ephemeral"}}]
    assert [each["role"] for each in body["messages"]] == ["user", "assistant", "user"]
    assert body.keys() == {"model", "max_tokens", "messages", "system", "stream"}
    assert (body["model"], body["max_tokens"], body["stream"]) == ("scripted", 16_384, True)


def test_what_is_sent_to_openai(serve: Any, asker_for: Any) -> None:
    body = sent("openai", refined(), serve, asker_for)
    assert [each["role"] for each in body["input"]] == ["user", "assistant", "user"]
    assert body.keys() == {"model", "max_output_tokens", "input", "instructions", "store", "stream"}
    assert (body["max_output_tokens"], body["store"]) == (16_384, False)


def test_what_is_sent_to_any_other_server(serve: Any, asker_for: Any) -> None:
    body = sent("openai-compatible", refined(), serve, asker_for)
    assert [each["role"] for each in body["messages"]] == ["system", "user", "assistant", "user"]
    assert body.keys() == {"model", "max_tokens", "messages", "stream", "stream_options"}
    assert body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_temperature_and_a_limit_are_sent_when_given(provider: str, serve: Any, asker_for: Any) -> None:
    body = sent(provider, question(temperature=0.0, max_tokens=77), serve, asker_for)
    assert body["temperature"] == 0.0
    assert 77 in (body.get("max_tokens"), body.get("max_output_tokens"))


THINKING: Final = [
    ("anthropic", "claude-opus-5-5", "high", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "high"}}),
    ("anthropic", "claude-haiku-5-5", "off", {"thinking": {"type": "disabled"}}),
    ("anthropic", "claude-sonnet-5-5", "off", {"thinking": {"type": "between_tools"}}),
    ("anthropic", "claude-haiku-4-5", "medium", {"thinking": {"type": "enabled", "budget_tokens": 4096}}),
    ("openai", "gpt-6.2-sol", "low", {"reasoning": {"effort": "low"}}),
    ("openai", "gpt-6-luna", "off", {"reasoning": {"effort": "none"}}),
    ("openai-compatible", "qwen", "medium", {"reasoning_effort": "medium"}),
]


@pytest.mark.parametrize(("provider", "model", "thinking", "expected"), THINKING)
def test_how_much_thinking_is_asked_for(
    provider: str, model: str, thinking: str, expected: dict[str, Any], serve: Any, asker_for: Any
) -> None:
    body = sent(provider, question(thinking=thinking), serve, asker_for, model)
    names = ("thinking", "output_config", "reasoning", "reasoning_effort")
    assert {name: body[name] for name in names if name in body} == expected


@pytest.mark.parametrize(
    ("model", "sampling"),
    [
        ("claude-opus-5-5", {"thinking": "off"}),
        ("claude-fable-5-2", {"thinking": "off"}),
        ("claude-haiku-4-5", {"thinking": "high", "max_tokens": 1024}),
        ("claude-opus-5-5", {"thinking": "deep"}),
    ],
)
def test_thinking_that_a_model_does_not_do_is_refused_before_a_request(
    model: str, sampling: dict[str, Any], serve: Any, asker_for: Any
) -> None:
    server = serve(TEXT)
    with pytest.raises(ModelError) as caught:
        asker_for("anthropic", server, model).ask(question(**sampling))
    assert (caught.value.number, server.requests) == ("KGB533", [])


def test_no_key_of_openai_is_sent_elsewhere(serve: Any, asker_for: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY")
    monkeypatch.setenv("OPENAI_ORG_ID", "org-mine")
    server = serve(TEXT)
    asker_for("openai-compatible", server).ask(question())
    headers = server.requests[0].headers
    assert headers["authorization"] == "Bearer none"
    assert not any(KEY in value or "org-mine" in value for value in headers.values())


def test_a_key_that_is_set_is_sent(serve: Any, asker_for: Any) -> None:
    server = serve(TEXT)
    for provider in PROVIDERS:
        asker_for(provider, server).ask(question())
    sent_keys = [each.headers.get("x-api-key") or each.headers["authorization"] for each in server.requests]
    assert [each.removeprefix("Bearer ") for each in sent_keys] == [KEY] * 3


def test_an_address_with_a_path_is_taken_as_it_is(serve: Any) -> None:
    server = serve(TEXT)
    for path, expected in (
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/a/v2", "/a/v2/chat/completions"),
    ):
        asker = provider_of(f"openai-compatible:{server.url}{path}#m")
        asker.ask(question())  # type: ignore[attr-defined]
        asker.close()  # type: ignore[attr-defined]
        assert server.requests[-1].path == expected


# --- what goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [429, 500, 529])
def test_the_sdk_asks_again_when_a_server_is_busy(provider: str, status: int, serve: Any, asker_for: Any) -> None:
    server = serve(Said(status=status), Said(status=status), TEXT)
    assert asker_for(provider, server).ask(question()).text == TEXT
    assert len(server.requests) == 3


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_a_server_that_stays_busy_leaves_the_question_open(
    provider: str, status: int, serve: Any, asker_for: Any
) -> None:
    server = serve(Said(status=status, message="come back later"))
    with pytest.raises(NotAnswered, match=f"{status}: come back later"):
        asker_for(provider, server).ask(question())
    assert len(server.requests) == 5


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("status", "number"), [(401, "KGB534"), (403, "KGB534"), (404, "KGB535")])
def test_what_ends_the_asking_for_all(provider: str, status: int, number: str, serve: Any, asker_for: Any) -> None:
    server = serve(Said(status=status, message="no such luck"))
    with pytest.raises(ModelError, match="no such luck") as caught:
        asker_for(provider, server).ask(question())
    assert (caught.value.number, len(server.requests)) == (number, 1)


ACCOUNTS: Final = [
    ("anthropic", Said(status=400, message="Your credit balance is too low to access the API.")),
    ("openai", Said(status=429, message="You exceeded your quota.", code="insufficient_quota")),
]


@pytest.mark.parametrize(("provider", "said"), ACCOUNTS)
def test_an_account_without_money_ends_the_asking(provider: str, said: Said, serve: Any, asker_for: Any) -> None:
    with pytest.raises(ModelError) as caught:
        asker_for(provider, serve(said)).ask(question())
    assert caught.value.number == "KGB534"


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_question_that_is_refused_is_one_question(provider: str, status: int, serve: Any, asker_for: Any) -> None:
    server = serve(Said(status=status, message="prompt is too long: 9 > 8"))
    with pytest.raises(Unanswerable, match="too long"):
        asker_for(provider, server).ask(question())
    assert len(server.requests) == 1


OPTIONS: Final = [
    ({"temperature": 0.5}, "temperature is not supported with this model", "--temperature"),
    ({"thinking": "low"}, "Unsupported value: 'reasoning.effort' does not support 'low'", "--thinking"),
    ({"max_tokens": 9_999_999}, "max_tokens: 9999999 > 128000, which is the maximum allowed", "--max-tokens"),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("sampling", "message", "option"), OPTIONS)
def test_an_option_that_the_model_does_not_take_ends_the_asking(
    provider: str, sampling: dict[str, Any], message: str, option: str, serve: Any, asker_for: Any
) -> None:
    with pytest.raises(ModelError, match=option) as caught:
        asker_for(provider, serve(Said(status=400, message=message))).ask(question(**sampling))
    assert caught.value.number == "KGB536"


@pytest.mark.parametrize(
    "message", ["temperature rises", "input length and max_tokens exceed context limit: 9 + 8 > 10"]
)
def test_a_refusal_about_what_was_not_given_is_about_the_question(message: str, serve: Any, asker_for: Any) -> None:
    with pytest.raises(Unanswerable):
        asker_for("anthropic", serve(Said(status=400, message=message))).ask(question())


CUTS: Final = {
    "lost connection": {"cut_off_after": 1500},
    "end without an end": {"ends_after": 7},
    "error in the stream": {"error_in_stream": "overloaded_error", "message": "busy"},
    "no JSON": {"malformed": True},
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("kind", CUTS)
def test_what_came_before_a_cut_is_kept(provider: str, kind: str, serve: Any, asker_for: Any) -> None:
    server = serve(Said(TEXT, **CUTS[kind]))
    reply = asker_for(provider, server).ask(question())
    assert reply.stop is Stop.CUT_OFF
    assert 0 < len(reply.text) < len(TEXT)
    assert TEXT.startswith(reply.text)
    assert reply.detail
    assert reply.usage.output_tokens is None
    assert len(server.requests) == 1  # what was written so far is paid for: it is not asked again


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    "said", [Said(TEXT, cut_off_after=10), Said(TEXT, ends_after=1), Said(TEXT, ends_after=0), Said(malformed=True)]
)
def test_a_cut_before_the_first_word_leaves_the_question_open(
    provider: str, said: Said, serve: Any, asker_for: Any
) -> None:
    with pytest.raises(NotAnswered):
        asker_for(provider, serve(said)).ask(question())


@pytest.mark.parametrize(
    ("code", "kind"),
    [("invalid_prompt", Unanswerable), ("server_error", NotAnswered), ("rate_limit_exceeded", NotAnswered)],
)
def test_a_response_that_failed(code: str, kind: type[Exception], serve: Any, asker_for: Any) -> None:
    with pytest.raises(kind, match="not today"):
        asker_for("openai", serve(Said(error_in_stream=code, message="not today"))).ask(question())


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("status", [200, 502])
def test_a_page_of_html_is_no_reply(provider: str, status: int, serve: Any, asker_for: Any) -> None:
    page = "<html><body>" + "Bad gateway. " * 200 + "</body></html>"
    with pytest.raises(NotAnswered) as caught:
        asker_for(provider, serve(Said(status=status, raw=page, retry_after_s=0.01))).ask(question(timeout_s=0.4))
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("provider", PROVIDERS)
def test_nobody_at_the_address_leaves_the_question_open(provider: str, serve: Any, asker_for: Any) -> None:
    server = serve(TEXT)
    asker = asker_for(provider, server)
    server.__exit__(None, None, None)
    with pytest.raises(NotAnswered):
        asker.ask(question(timeout_s=0.4))


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_time_for_a_reply_is_the_time_for_all_of_it(provider: str, serve: Any, asker_for: Any) -> None:
    """Each event comes in time, all of them together do not: what had come is kept."""
    server = serve(TEXT, Said(TEXT, pause_s=0.1))
    asker = asker_for(provider, server)
    asker.ask(question())  # with which the client is made
    reply = asker.ask(question(timeout_s=0.8))
    assert (reply.stop, reply.detail) == (Stop.CUT_OFF, "no end within 0.8 s")
    assert reply.text
    assert TEXT.startswith(reply.text)
    # What nobody waits for is not written, and not paid for, any longer.
    assert until(lambda: server.hung_up == 1)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_silent_server_is_not_waited_for_and_not_asked_again(provider: str, serve: Any, asker_for: Any) -> None:
    server = serve(TEXT, Said(TEXT, wait_s=60))
    asker = asker_for(provider, server)
    asker.ask(question())  # with which the client is made
    with pytest.raises(NotAnswered, match=r"within 0\.5 s"):
        asker.ask(question(timeout_s=0.5))
    time.sleep(1.5)  # the SDK's own timeout and first wait are over by then
    assert len(server.requests) == 2


SLOW: Final = {
    "before the first byte": Said(TEXT, wait_s=60),
    "in the middle": Said(TEXT, pause_s=1.0),
    "while the SDK waits to ask again": Said(status=429, retry_after_s=60),
}


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("kind", SLOW)
def test_close_ends_what_is_under_way(provider: str, kind: str, serve: Any, asker_for: Any) -> None:
    server = serve(SLOW[kind])
    asker = asker_for(provider, server)
    ended: list[type[BaseException]] = []

    def ask() -> None:
        try:
            asker.ask(question())
        except BaseException as error:
            ended.append(type(error))

    thread = threading.Thread(target=ask)
    thread.start()
    assert until(lambda: server.requests)
    time.sleep(0.2)
    asker.close()
    thread.join(10)  # the server would take a minute, or come to a reply
    assert ended == [NotAnswered]
    with pytest.raises(NotAnswered):
        asker.ask(question())
    assert len(server.requests) == 1


# --- keys ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("shown", [KEY, "sk-live*********wxyz", "Bearer abcdef123456"])
def test_no_message_has_a_key(provider: str, shown: str, serve: Any, asker_for: Any) -> None:
    for status in (400, 401, 404, 429):
        with pytest.raises((ModelError, Unanswerable, NotAnswered)) as caught:
            asker_for(provider, serve(Said(status=status, message=f"incorrect key: {shown}, ask again"))).ask(
                question()
            )
        assert shown not in str(caught.value)
        assert "[key]" in str(caught.value)
        assert "ask again" in str(caught.value)


def test_half_a_key_is_none_either(serve: Any, asker_for: Any) -> None:
    """A long message is cut where the key stands."""
    with pytest.raises(NotAnswered) as caught:
        asker_for("openai", serve(Said(status=409, message="x" * 290 + f" {KEY}"))).ask(question())
    assert KEY[:8] not in str(caught.value)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_error_in_a_stream_has_no_key(provider: str, serve: Any, asker_for: Any) -> None:
    said = Said(TEXT, error_in_stream="api_error", message=f"the key {KEY} has expired")
    reply = asker_for(provider, serve(said)).ask(question())
    assert "[key]" in reply.detail
    assert KEY not in repr(reply)


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_a_missing_key_is_told_at_once(
    provider: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, serve: Any, asker_for: Any
) -> None:
    monkeypatch.delenv(f"{provider.upper()}_API_KEY")
    monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path / "none"))
    asker = provider_of(f"{provider}:m")
    asked: list[object] = []
    monkeypatch.setattr("socket.socket.connect", lambda _, address: asked.append(address))
    monkeypatch.setattr("time.sleep", asked.append)
    with pytest.raises(ModelError, match=f"export {provider.upper()}_API_KEY=") as caught:
        asker.ready()  # type: ignore[attr-defined]
    assert (caught.value.number, asked) == ("KGB531", []), "nobody is asked or waited for"


def test_openrouters_own_variable_is_looked_at_for_openrouter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_COMPATIBLE_API_KEY")
    asker: Any = provider_of("openai-compatible:https://openrouter.ai/api/v1#a/b")
    with pytest.raises(ModelError, match="export OPENROUTER_API_KEY="):
        asker.ready()
    monkeypatch.setenv("OPENROUTER_API_KEY", "k")
    asker.ready()
    assert (asker.endpoint, asker.secrets()) == ("openrouter.ai", ("k",))


BAD_SPECS: Final = (
    "anthropic",
    "openai:",
    "openai-compatible",
    "openai-compatible:http://h",
    "openai-compatible:http://h#",
    "openai-compatible:h:8000#m",
    "openai-compatible:http://h:port#m",
    "openai-compatible:http://me:secret@h#m",
    "openai-compatible:http://h/v1?key=secret#m",
)


@pytest.mark.parametrize("spec", BAD_SPECS)
def test_a_model_that_is_not_named_is_told_with_the_line_to_type(spec: str) -> None:
    with pytest.raises(ModelError, match=r"for example|MODEL|export") as caught:
        provider_of(spec)
    assert caught.value.number == "KGB532"
    assert "secret" not in str(caught.value)


ENDPOINTS: Final = [
    ("anthropic:m", "https://api.anthropic.com", "anthropic"),
    ("anthropic:m", "https://gateway.example/a", "gateway.example"),
    ("openai:m", "https://api.openai.com/v1", "openai"),
    ("openai:m", "http://127.0.0.1:8000", ""),
    ("openai-compatible:http://localhost:8000#m", "", ""),
    ("openai-compatible:http://[::1]:8000#m", "", ""),
    ("openai-compatible:https://host.example#m", "", "host.example"),
]


@pytest.mark.parametrize(("spec", "url", "endpoint"), ENDPOINTS)
def test_whose_prices_count(spec: str, url: str, endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", url)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    asker: Any = provider_of(spec)
    assert asker.endpoint == endpoint


# --- batches ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def batcher(serve: Any) -> Iterator[Callable[..., AnthropicClient]]:
    made: list[AnthropicClient] = []

    def make() -> AnthropicClient:
        made.append(AnthropicClient("claude", "scripted", poll_s=0.01))
        return made[-1]

    yield make
    for asker in made:
        asker.close()


def closed_once_sent(asker: AnthropicClient, server: WireServer) -> AnthropicClient:
    """While it waits to look at its batch again, for longer than a test may take."""
    asker.poll_s = 600.0

    def close() -> None:
        until(lambda: server.batches)
        time.sleep(0.2)
        asker.close()

    threading.Thread(target=close).start()
    return asker


BATCH: Final = {
    "right": Said(TEXT),
    "long": Said(status=400, message="prompt is too long"),
    "busy": Said(status=529),
    "late": Said(batch="expired"),
    "stopped": Said(batch="canceled"),
    "lost": Said(batch="missing"),
}


def test_every_question_of_a_batch_is_answered_for_once(serve: Any, batcher: Any) -> None:
    server = serve(lambda asked: BATCH[asked.turns[0]], batch_polls=2)
    said: list[str] = []
    results = {
        asked.prompt.turns[0].text: got for asked, got in batcher().ask_many([question(k) for k in BATCH], said.append)
    }
    kinds = {name: type(each) for name, each in results.items()}
    lost = dict.fromkeys(("busy", "late", "stopped", "lost"), NotAnswered)
    assert kinds == {"right": Reply, "long": Unanswerable, **lost}
    reply = results["right"]
    assert isinstance(reply, Reply)
    assert (reply.text, reply.batch, reply.stop, reply.model_id) == (TEXT, True, Stop.END, "scripted")
    assert reply.usage.output_tokens == 13
    assert len(server.batches) == 1
    assert said == ["batch msgbatch_0: 6 requests sent", "batch msgbatch_0: 0 of 6 done"]
    assert all("stream" not in each.body and "cache_control" in str(each.body["system"]) for each in server.requests)


def test_a_batch_that_was_not_waited_for_is_found_again(serve: Any, batcher: Any, tmp_path: Path) -> None:
    """A batch is paid for whoever waits: the run that goes on fetches its replies and asks only for what is new."""
    server = serve(lambda asked: f"kernel of {asked.turns[0]}", batch_polls=3)
    asked = [replace(question(text), folder=tmp_path / text) for text in ("a", "b", "c")]
    first = closed_once_sent(batcher(), server)
    assert all(isinstance(result, NotAnswered) for _, result in first.ask_many(asked[:2], print))
    said: list[str] = []
    results = {each.prompt.turns[0].text: got for each, got in batcher().ask_many(asked, said.append)}
    assert {name: got.text for name, got in results.items() if isinstance(got, Reply)} == {
        name: f"kernel of {name}" for name in "abc"
    }
    assert [each.turns[0] for each in server.requests] == ["a", "b", "c"]
    assert said[0] == "batch msgbatch_0: 2 requests were sent before"
    assert not list(tmp_path.rglob("batch.json"))  # what was fetched is not fetched again


def test_a_batch_that_is_forgotten_is_asked_again(serve: Any, batcher: Any, tmp_path: Path) -> None:
    server = serve(lambda asked: TEXT, batch_polls=10_000)
    asked = replace(question(), folder=tmp_path / "a")
    first = closed_once_sent(batcher(), server)
    list(first.ask_many([asked], print))
    server.batches.clear()
    server.batch_polls = 0
    ((_, result),) = batcher().ask_many([asked], print)
    assert isinstance(result, Reply)
    assert len(server.requests) == 2


def test_many_questions_are_sent_in_several_batches(serve: Any, batcher: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kgbench.models.batches.REQUESTS_PER_BATCH", 2)
    server = serve(lambda asked: asked.turns[0], batch_polls=0)
    results = batcher().ask_many([question(f"q{number}") for number in range(5)], lambda words: None)
    assert {asked.prompt.turns[0].text: got.text for asked, got in results} == {f"q{n}": f"q{n}" for n in range(5)}
    assert len(server.batches) == 3


def test_a_key_that_is_refused_ends_a_batch(serve: Any, batcher: Any) -> None:
    serve(Said(status=401))
    with pytest.raises(ModelError) as caught:
        list(batcher().ask_many([question()], lambda words: None))
    assert caught.value.number == "KGB534"


def test_close_ends_the_waiting_for_a_batch(serve: Any, batcher: Any) -> None:
    server = serve(TEXT, batch_polls=10_000)
    asker = closed_once_sent(batcher(), server)
    ((_, result),) = asker.ask_many([question()], lambda words: None)
    assert isinstance(result, NotAnswered)
    assert len(server.requests) == 1


def test_only_anthropic_has_batches(serve: Any, asker_for: Any) -> None:
    server = serve(TEXT)
    assert [asker_for(each, server).batches for each in PROVIDERS] == [True, False, False]


# --- what is imported ------------------------------------------------------------------------------------------------


def test_no_sdk_is_imported_before_it_is_used() -> None:
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom kgbench.cli.main import main\n"
        "from kgbench.models.provider import provider_of\n"
        "assert CliRunner().invoke(main, ['--help']).exit_code == 0\n"
        "assert CliRunner().invoke(main, ['run', '--help']).exit_code == 0\n"
        "[provider_of(each).ready() for each in ('claude', 'gpt', 'openai-compatible:http://localhost:1#m')]\n"
        "print([name for name in ('anthropic', 'openai', 'httpx', 'httpx2', 'jinja2', 'torch') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_two_threads_may_ask_at_once(serve: Any, asker_for: Any) -> None:
    server = serve(lambda asked: Said(asked.turns[0] * 20, pause_s=0.01))
    asker = asker_for("anthropic", server)
    texts: dict[str, str] = {}

    def ask(text: str) -> None:
        texts[text] = asker.ask(question(text)).text

    threads = [threading.Thread(target=ask, args=(f"q{number}",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert texts == {f"q{number}": f"q{number}" * 20 for number in range(6)}
