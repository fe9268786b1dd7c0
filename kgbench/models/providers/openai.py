"""GPT, through the official SDK: the Responses API as a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from kgbench.llm.conversation import ModelClient, Question, Stop, Usage
from kgbench.models.http import RETRIES, Draft, HttpClient, endpoint_of, environment, host_of, named_model
from kgbench.models.provider import ModelError

FORM: Final = "openai:MODEL"
SUMMARY: Final = "a GPT model, by its id; needs OPENAI_API_KEY"
EXAMPLE: Final = "gpt-6.2-sol"
URL: Final = "https://api.openai.com/v1"
EFFORTS: Final = {"off": "none", "low": "low", "medium": "medium", "high": "high"}
INCOMPLETE: Final = {"max_output_tokens": Stop.MAX_TOKENS, "content_filter": Stop.REFUSED}
# What a response that failed says of the question; anything else says something of the server.
REFUSED_CODES: Final = frozenset({"invalid_prompt", "bio_policy", "misalignment_policy_violation"})


def provider(argument: str | None, alias: str | None = None) -> ModelClient:
    """Raises ModelError when no model is named."""
    model_id = named_model("openai", argument, EXAMPLE)
    return OpenAIClient(alias or f"openai:{model_id}", model_id)


class Failed(Exception):
    """The provider said in a stream that there will be no reply; has what the SDK's own errors have."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code
        self.status_code = 400 if code in REFUSED_CODES else 200


@dataclass
class OpenAIClient(HttpClient):
    """Key and address come from the SDK's own variables."""

    package: ClassVar[str] = "openai"
    key_advice: ClassVar[str] = "Look at OPENAI_API_KEY and at the account it belongs to"

    @property
    def endpoint(self) -> str:
        return endpoint_of(self._url, host_of(URL), "openai")

    @property
    def host(self) -> str:
        return host_of(self._url)

    @property
    def _url(self) -> str:
        return environment("OPENAI_BASE_URL") or URL

    def secrets(self) -> Sequence[str]:
        return (environment("OPENAI_API_KEY"),)

    def check_key(self) -> None:
        if not any(self.secrets()):
            raise ModelError(
                "KGB531",
                f"--model {self.model}: there is no key. Type: export OPENAI_API_KEY=…, with one of your account",
            )

    def new_client(self, sdk: Any, http_client: Any) -> Any:
        return sdk.OpenAI(max_retries=RETRIES, http_client=http_client)

    def stream(self, request: dict[str, Any], timeout: Any, draft: Draft) -> None:
        with self.client.responses.create(**request, stream=True, timeout=timeout) as stream:
            draft.response = stream.response
            for event in stream:
                if event.type in ("response.output_text.delta", "response.refusal.delta"):
                    draft.pieces.append(event.delta)
                    if event.type == "response.refusal.delta":
                        draft.detail = "refusal"
                elif event.type == "error":
                    raise Failed(event.message, event.code or "")
                elif response := getattr(event, "response", None):
                    _fill(draft, response)

    def request(self, question: Question) -> dict[str, Any]:
        """One response's parameters. Nothing of it is to be kept there, and a shared front is cached by itself."""
        prompt, sampling = question.prompt, question.sampling
        body: dict[str, Any] = {
            "model": self.model_id,
            "max_output_tokens": sampling.max_tokens,
            "input": [{"role": turn.role, "content": turn.text} for turn in prompt.turns],
            "store": False,
        }
        if prompt.system:
            body["instructions"] = prompt.system
        if sampling.temperature is not None:
            body["temperature"] = sampling.temperature
        if sampling.thinking is not None:
            body["reasoning"] = {"effort": EFFORTS[sampling.thinking]}
        return body


def _fill(draft: Draft, response: Any) -> None:
    """From the response that some events carry; the last one has its usage and how it ended."""
    draft.model_id = response.model or draft.model_id
    if response.usage is not None:
        details = response.usage.input_tokens_details
        draft.usage = split_usage(response.usage.input_tokens, details, response.usage.output_tokens)
    if response.status == "failed":
        error = response.error
        raise Failed(error.message, error.code) if error else Failed("the response failed", "")
    if response.status == "completed":
        draft.stop = Stop.REFUSED if draft.detail == "refusal" else Stop.END
    elif response.status == "incomplete":
        reason = response.incomplete_details.reason if response.incomplete_details else None
        draft.stop = INCOMPLETE.get(reason or "", Stop.CUT_OFF)
        draft.detail = reason or "incomplete"


def split_usage(prompt_tokens: int, details: Any, output_tokens: int) -> Usage:
    """OpenAI counts the cached part of a prompt within it; here the three kinds of input are disjoint."""
    cached = getattr(details, "cached_tokens", None) or 0
    written = getattr(details, "cache_write_tokens", None) or 0
    return Usage(max(0, prompt_tokens - cached - written), cached, written, output_tokens)
