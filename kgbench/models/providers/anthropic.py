"""Claude, through the official SDK: the Messages API as a stream, and the Message Batches API for many questions."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from kgbench.llm.conversation import ModelClient, NotAnswered, Question, Sampling, Stop, Usage
from kgbench.models.batches import MessageBatches, Result
from kgbench.models.http import (
    RETRIES,
    THINKING,
    Closed,
    Draft,
    HttpClient,
    check_thinking,
    endpoint_of,
    environment,
    host_of,
    named_model,
)
from kgbench.models.provider import ModelError

FORM: Final = "anthropic:MODEL"
SUMMARY: Final = "a Claude model, by its id; needs ANTHROPIC_API_KEY"
EXAMPLE: Final = "claude-opus-5-5"
URL: Final = "https://api.anthropic.com"
STOPS: Final = {
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "max_tokens": Stop.MAX_TOKENS,
    "model_context_window_exceeded": Stop.MAX_TOKENS,
    "refusal": Stop.REFUSED,
}

# Models that think before every answer, at an effort that can be chosen, and do not take `off`.
ALWAYS_THINK: Final = ("claude-opus-5-5", "claude-fable-", "claude-mythos-")
# Models that take a number of tokens to think in, and know no adaptive thinking.
TAKES_A_BUDGET: Final = re.compile(r"claude-(3|(opus|sonnet|haiku)-4(-[0-5])?(-\d{8})?$)")
BUDGETS: Final = {"low": 1 / 8, "medium": 1 / 4, "high": 1 / 2}
LEAST_BUDGET_TOKENS: Final = 1024
"""Fewest tokens of thinking that the API accepts as a budget."""
# What stands for `off` where `disabled` is refused: with no tools, nothing is thought between their calls.
OFF: Final = {"claude-sonnet-5-5": "between_tools"}

# What an error in a batch would have had as its HTTP status, where that says more than "later".
STATUS_OF: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
}
# The SDK finds these by itself: profiles and identity tokens.
OTHER_CREDENTIALS: Final = ("ANTHROPIC_PROFILE", "ANTHROPIC_IDENTITY_TOKEN", "ANTHROPIC_IDENTITY_TOKEN_FILE")


def provider(argument: str | None, alias: str | None = None) -> ModelClient:
    """Raises ModelError when no model is named."""
    model_id = named_model("anthropic", argument, EXAMPLE)
    return AnthropicClient(alias or f"anthropic:{model_id}", model_id)


@dataclass
class AnthropicClient(HttpClient):
    """Key and address come from the SDK's own variables."""

    poll_s: float = 5.0
    """Before a batch is looked at for the second time; then longer and longer."""
    batches: ClassVar[bool] = True
    package: ClassVar[str] = "anthropic"
    key_advice: ClassVar[str] = "Look at ANTHROPIC_API_KEY and at the account it belongs to"

    @property
    def endpoint(self) -> str:
        return endpoint_of(self._url, host_of(URL), "anthropic")

    @property
    def host(self) -> str:
        return host_of(self._url)

    @property
    def _url(self) -> str:
        return environment("ANTHROPIC_BASE_URL") or URL

    def secrets(self) -> Sequence[str]:
        return environment("ANTHROPIC_API_KEY"), environment("ANTHROPIC_AUTH_TOKEN")

    def check_key(self) -> None:
        if any(self.secrets()) or environment(*OTHER_CREDENTIALS) or _profiles().is_dir():
            return
        raise ModelError(
            "KGB531",
            f"--model {self.model}: there is no key. Type: export ANTHROPIC_API_KEY=…, with one of your account",
        )

    def new_client(self, sdk: Any, http_client: Any) -> Any:
        return sdk.Anthropic(max_retries=RETRIES, http_client=http_client)

    def stream(self, request: dict[str, Any], timeout: Any, draft: Draft) -> None:
        # Later models take no temperature, and so does the SDK's signature; earlier ones do.
        extra = {"temperature": request["temperature"]} if "temperature" in request else None
        known = {name: value for name, value in request.items() if name != "temperature"}
        with self.client.messages.stream(**known, extra_body=extra, timeout=timeout) as stream:
            draft.response = stream.response
            for event in stream:
                if event.type == "text":
                    draft.pieces.append(event.text)
                elif event.type in ("message_start", "message_delta"):
                    _fill(draft, stream.current_message_snapshot, whole=event.type == "message_delta")

    def request(self, question: Question) -> dict[str, Any]:
        """One message's parameters. The system part is what all problems of a source share: it is cached."""
        prompt, sampling = question.prompt, question.sampling
        body: dict[str, Any] = {
            "model": self.model_id,
            "max_tokens": sampling.max_tokens,
            "messages": [{"role": turn.role, "content": turn.text} for turn in prompt.turns],
        }
        if prompt.system:
            part = {"type": "text", "text": prompt.system, "cache_control": {"type": "ephemeral"}}
            body["system"] = [part]
        if sampling.temperature is not None:
            body["temperature"] = sampling.temperature
        return body | thinking_of(self.model, self.model_id, sampling)

    def ask_many(self, questions: Sequence[Question], say: Callable[[str], None]) -> Iterator[tuple[Question, Result]]:
        """As ``ModelClient``'s. A batch that was sent before and not waited for is waited for again."""
        self.ready()
        for question in questions:
            check_thinking(self.model, question.sampling)
        requests = [self.request(question) for question in questions]
        yield from MessageBatches(self, self.poll_s, say).ask(questions, requests)

    def call(self, work: Callable[[Any], Any], sampling: Sampling) -> Any:
        """What ``work`` returns for the client. Raises NotAnswered, Unanswerable or ModelError."""
        returned: list[Any] = []

        def run() -> None:
            returned.append(work(self.client.with_options(timeout=self.timeout(sampling))))

        failure = self._calls.run(run, Draft(self.model_id), sampling.timeout_s)
        if failure is None:
            return returned[0]
        if isinstance(failure, Closed):
            raise NotAnswered("not waited for: the run was ended")
        raise self.refusal(failure, sampling)

    def wait(self, seconds: float) -> bool:
        """Whether it was closed meanwhile."""
        return self._calls.closed.wait(seconds)

    def batch_result(self, result: Any, sampling: Sampling, seconds: float) -> Result:
        """One entry of a batch's results. Raises ModelError as ``ask`` does."""
        if result.type == "succeeded":
            draft = Draft(self.model_id, [part.text for part in result.message.content if part.type == "text"])
            _fill(draft, result.message, whole=True)
            return replace(self.reply(draft, draft.stop or Stop.END, draft.detail, seconds), batch=True)
        if result.type != "errored":
            return NotAnswered(f"{result.type} in its batch")
        error = result.error.error
        words = self.scrubbed(f"in its batch: {error.message}")
        judged = self.judged(STATUS_OF.get(error.type, 500), words, error.type, sampling)
        if isinstance(judged, ModelError):
            raise judged
        return judged


def thinking_of(model: str, model_id: str, sampling: Sampling) -> dict[str, Any]:
    """The parameters for ``--thinking``; none where it was not given."""
    effort = sampling.thinking
    if effort is None:
        return {}
    if effort == "off":
        if model_id.startswith(ALWAYS_THINK):
            others = ", ".join(THINKING[1:])
            raise ModelError("KGB533", f"--model {model}: {model_id} always thinks: --thinking takes {others}")
        return {"thinking": {"type": next((OFF[name] for name in OFF if model_id.startswith(name)), "disabled")}}
    if not TAKES_A_BUDGET.match(model_id):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": effort}}
    budget = max(LEAST_BUDGET_TOKENS, int(sampling.max_tokens * BUDGETS[effort]))
    if budget >= sampling.max_tokens:
        raise ModelError(
            "KGB533",
            f"--model {model}: {model_id} thinks in at least {LEAST_BUDGET_TOKENS} tokens, which leaves none of "
            f"--max-tokens {sampling.max_tokens}; write more, or --thinking off",
        )
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}


def _fill(draft: Draft, message: Any, *, whole: bool) -> None:
    """``whole``: its end is there, and with it the count of output tokens."""
    usage = message.usage
    draft.model_id = message.model or draft.model_id
    draft.usage = Usage(
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cache_read_input_tokens or 0,
        cache_write_tokens=usage.cache_creation_input_tokens or 0,
        output_tokens=usage.output_tokens if whole else None,
    )
    if whole and message.stop_reason is not None:
        draft.stop = STOPS.get(message.stop_reason, Stop.END)
        draft.detail = _detail(message)


def _detail(message: Any) -> str:
    details = getattr(message, "stop_details", None)
    told = [getattr(details, name, None) for name in ("category", "explanation")]
    return ": ".join([message.stop_reason, *(each for each in told if each)]) if any(told) else ""


def _profiles() -> Path:
    """Where the SDK looks for credentials that are not in the environment."""
    return Path(os.environ.get("ANTHROPIC_CONFIG_DIR") or "~/.config/anthropic").expanduser()
