"""Questions to a model and its replies: Prompt, Question, Reply, and the two exceptions for a missing reply.

This module has plain data and one base class; it needs no SDK and no network. A provider is a module whose ``provider``
function returns a ``ModelClient``. Other code chooses the questions and stores the replies.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from kgbench.core.types import Result
from kgbench.problem.model import Problem

MAX_SOURCE_BYTES: Final = 1 << 20
"""Most bytes of a candidate's source. A longer source gets the outcome ``no code`` and is not judged."""

RECORDED_USD: Final = "recorded_usd"
RECORDED_PROMPT: Final = "recorded_prompt_sha256"
"""Keys in the facts of a reply from an earlier run: its cost then, in US dollars, and its prompt's SHA-256."""


@dataclass(frozen=True)
class Turn:
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Prompt:
    """A conversation that the model is to continue. Its last turn is the user's."""

    system: str
    """The same for every problem of one source and language, so that providers can cache it."""
    turns: tuple[Turn, ...]

    @property
    def sha256(self) -> str:
        """SHA-256 of everything that is sent."""
        return hashlib.sha256(json.dumps(asdict(self), ensure_ascii=False).encode()).hexdigest()

    @property
    def text(self) -> str:
        """The conversation as one text, for a person or an agent."""
        return "\n\n".join((self.system, *(turn.text for turn in self.turns)))


@dataclass(frozen=True)
class Sampling:
    """Sampling parameters of a reply. None means the provider's default."""

    temperature: float | None = None
    max_tokens: int = 16_384
    """Upper bound of output tokens of one reply, thinking included."""
    thinking: str | None = None
    """``off``, ``low``, ``medium`` or ``high``; a provider without it raises UsageError."""
    timeout_s: float = 600.0
    """Seconds for one reply; for an agent, for the whole of its work on one problem."""


@dataclass(frozen=True)
class Question:
    """One request: a problem, which sample and round of it, and what is sent."""

    problem: Problem
    sample: int
    round: int
    """Counted from 0. From round 1 on, ``prompt`` has the verdict of the round before."""
    prompt: Prompt
    sampling: Sampling
    judge: Callable[[str], Result] | None = None
    """Has a candidate's source judged, on inputs drawn for this call. None when nothing is judged (generate)."""
    folder: Path | None = None
    """Folder in which a provider may store files about this question, such as an agent's log. Who writes creates it."""
    hidden: tuple[Path, ...] = ()
    """Folders that an agent must not see: the run's own folder, the user's problem folders."""
    visible: tuple[Path, ...] = ()
    """Paths in the user's home that an agent may see (``--agent-sees``): its program, its credentials."""
    checks: int = 50
    """Most calls of ``judge`` that an agent may make (``--agent-checks``)."""
    peaks: Mapping[str, Any] | None = None
    """Measured peaks of the device; None when nothing is judged or no peak is measured."""


class Stop(StrEnum):
    """Why a reply ended."""

    END = "end"
    MAX_TOKENS = "max tokens"
    REFUSED = "refused"
    CUT_OFF = "cut off"
    """The connection or the process ended before the reply did. The text received so far is kept."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one reply; None when the provider reports no count. No token counts as two kinds of input."""

    input_tokens: int | None = None
    """Input tokens neither read from a cache nor written to one."""
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    """Output tokens, thinking included."""


@dataclass(frozen=True)
class Reply:
    """A model's whole reply, not yet parsed."""

    text: str
    model_id: str
    """The exact id that answered, as the provider names it."""
    stop: Stop = Stop.END
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    """Seconds from sending the request to the last byte."""
    batch: bool = False
    """Whether the batch interface was used, whose prices differ."""
    detail: str = ""
    """More about ``stop``, in the provider's words."""
    code: str | None = None
    """The kernel's source when it is not part of ``text``: an agent's ``kernel.py``."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Further facts to store: an agent's exit code, its checks, whether a sandbox held it."""


class NotAnswered(Exception):
    """No reply to one question after all retries: a rate limit, an overloaded server, a lost connection.

    The sample stays unanswered; ``--resume`` asks it again.
    """


class Unanswerable(Exception):
    """The provider will never answer this question (too long, not allowed). The sample's outcome is ``no code``."""


class ModelClient(ABC):
    """Base class of every provider's client. Several threads may call it at once."""

    model: str
    """The name under which results are stored: the value of ``--model``."""
    model_id: str
    """The model's id, as the provider names it."""
    timed: bool = True
    """Whether its kernels are timed."""
    batches: ClassVar[bool] = False
    """Whether ``ask_many`` is implemented."""
    is_agent: ClassVar[bool] = False
    """Whether it works on files in its own folder. Its prompts then say so."""

    @property
    @abstractmethod
    def endpoint(self) -> str:
        """Key of the price table: ``anthropic``, ``openai``, a host name; empty when the model is free."""

    @abstractmethod
    def ready(self) -> None:
        """Raises ModelError when SDK, key or program is missing. Takes under a second and sends no request."""

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        """Those of the selected problems' ``ids`` that this model can be asked about.

        chosen: whether ``--problems`` named them. Raises ModelError when none is left.
        """
        return ids

    def recorded(self) -> tuple[int, int] | None:
        """Number of samples and of rounds of the run whose replies are repeated; None when replies are new."""
        return None

    @abstractmethod
    def ask(self, question: Question) -> Reply:
        """One reply to one question.

        Raises NotAnswered or Unanswerable for this question alone. Raises ModelError when no question of this run
        can be answered (a wrong key, an unknown model).
        """

    def ask_many(
        self, questions: Sequence[Question], say: Callable[[str], None]
    ) -> Iterator[tuple[Question, Reply | NotAnswered | Unanswerable]]:
        """Replies to all questions through the batch interface, each yielded once it is known.

        Raises ModelError when no question of this run can be answered.
        """
        raise NotImplementedError("there is no batch interface")

    @abstractmethod
    def close(self) -> None:
        """Aborts running requests: ``ask`` in another thread then soon raises NotAnswered."""
