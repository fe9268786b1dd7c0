"""Any server that speaks OpenAI's Chat Completions: a local vLLM, SGLang, llama.cpp or Ollama, or OpenRouter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

from kgbench.llm.conversation import ModelClient, Question, Stop
from kgbench.models.http import RETRIES, Draft, HttpClient, endpoint_of, environment, host_of
from kgbench.models.provider import ModelError
from kgbench.models.providers.openai import EFFORTS, split_usage

NAME: Final = "openai-compatible"
FORM: Final = "openai-compatible:URL#MODEL"
SUMMARY: Final = "a model at a server of your own, or at one like OpenRouter"
EXAMPLE: Final = f"--model {NAME}:http://localhost:8000#MODEL"
KEY: Final = "OPENAI_COMPATIBLE_API_KEY"
# Services whose own variable is looked at, too. OPENAI_API_KEY never is: it is not for any address one may type.
KEYS_OF_HOSTS: Final = {"openrouter.ai": "OPENROUTER_API_KEY"}
STOPS: Final = {"stop": Stop.END, "length": Stop.MAX_TOKENS, "content_filter": Stop.REFUSED, "error": Stop.CUT_OFF}


def provider(argument: str | None, alias: str | None = None) -> ModelClient:
    """Raises ModelError when the address or the model is missing."""
    url, mark, model_id = (argument or "").partition("#")
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good or not mark or not model_id:
        # What was typed is not repeated: there may be a password in it.
        raise ModelError("KGB532", f"--model {NAME}: an address, # and a model's id belong after the colon: {EXAMPLE}")
    if parts.username or parts.password or parts.query:
        raise ModelError(
            "KGB532", f"--model {NAME}: a key has no place in the address, which is stored. Type: export {KEY}=…"
        )
    base = url.rstrip("/") if parts.path.strip("/") else f"{url.rstrip('/')}/v1"
    return CompatibleClient(alias or f"{NAME}:{argument}", model_id, url=base)


@dataclass
class CompatibleClient(HttpClient):
    """A key is sent only where one is set."""

    url: str = ""
    package: ClassVar[str] = "openai"
    key_advice: ClassVar[str] = f"Does the server want a key? Type: export {KEY}=…"

    @property
    def endpoint(self) -> str:
        return endpoint_of(self.url, "", "")

    @property
    def host(self) -> str:
        return host_of(self.url)

    def secrets(self) -> Sequence[str]:
        return (environment(KEY, *([KEYS_OF_HOSTS[self.host]] if self.host in KEYS_OF_HOSTS else [])),)

    def check_key(self) -> None:
        name = KEYS_OF_HOSTS.get(self.host)
        if name and not any(self.secrets()):
            raise ModelError(
                "KGB531", f"--model {self.model}: there is no key. Type: export {name}=…, with one of yours"
            )

    def new_client(self, sdk: Any, http_client: Any) -> Any:
        # The SDK wants a key, a server without one ignores it. What belongs to an account at OpenAI stays here.
        return sdk.OpenAI(
            base_url=self.url,
            api_key=self.secrets()[0] or "none",
            admin_api_key="",
            organization="",
            project="",
            max_retries=RETRIES,
            http_client=http_client,
        )

    def stream(self, request: dict[str, Any], timeout: Any, draft: Draft) -> None:
        with self.client.chat.completions.create(**request, timeout=timeout) as stream:
            draft.response = stream.response
            for chunk in stream:
                draft.model_id = chunk.model or draft.model_id
                if chunk.usage is not None:
                    usage = chunk.usage
                    draft.usage = split_usage(usage.prompt_tokens, usage.prompt_tokens_details, usage.completion_tokens)
                for choice in chunk.choices or ():
                    if choice.delta is not None and choice.delta.content:
                        draft.pieces.append(choice.delta.content)
                    if choice.finish_reason is not None:
                        draft.stop = STOPS.get(choice.finish_reason, Stop.END)

    def request(self, question: Question) -> dict[str, Any]:
        """One completion's parameters; ``max_tokens`` and not its newer name, which few of these servers know."""
        prompt, sampling = question.prompt, question.sampling
        system = [{"role": "system", "content": prompt.system}] if prompt.system else []
        body: dict[str, Any] = {
            "model": self.model_id,
            "max_tokens": sampling.max_tokens,
            "messages": [*system, *({"role": turn.role, "content": turn.text} for turn in prompt.turns)],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if sampling.temperature is not None:
            body["temperature"] = sampling.temperature
        if sampling.thinking is not None:
            body["reasoning_effort"] = EFFORTS[sampling.thinking]
        return body
