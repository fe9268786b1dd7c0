"""Questions to a model and its replies: Prompt, Question, Reply, and the two ways of getting no reply.

Plain data and one base class, no SDK and no network. A provider that asks is a module whose ``provider`` function
returns a ``ModelClient``; ``generation.py`` decides which questions are asked, and stores the replies.
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
"""Most bytes of a candidate's text; a longer one counts as no code, and is not judged."""

RECORDED_USD: Final = "recorded_usd"
RECORDED_PROMPT: Final = "recorded_prompt_sha256"
"""Facts of a reply that somebody gave in an earlier run: what it cost then, and the prompt that it answered."""


@dataclass(frozen=True)
class Turn:
    """One message of a conversation."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Prompt:
    """A conversation up to where the model is to answer; its last turn is the user's."""

    system: str
    """The part that is the same for every problem of a source and language, which providers cache."""
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
    """How a reply is drawn. None leaves it to the provider."""

    temperature: float | None = None
    max_tokens: int = 16_384
    """Upper bound of output tokens of one reply, thinking included."""
    thinking: str | None = None
    """``off``, ``low``, ``medium`` or ``high``; a provider that has no such thing refuses it with UsageError."""
    timeout_s: float = 600.0
    """Seconds for one reply; for an agent, for the whole of its work on one problem."""


@dataclass(frozen=True)
class Question:
    """One request: a problem, which sample and round of it, and what is sent."""

    problem: Problem
    sample: int
    round: int
    """Round from 0; later ones carry the verdict of the one before in ``prompt``."""
    prompt: Prompt
    sampling: Sampling
    judge: Callable[[str], Result] | None = None
    """Asks the run's referee about a text with inputs of its own; None where nothing is judged (generate)."""
    folder: Path | None = None
    """Folder in which a provider may keep what it wants of this question (an agent's log); the writer makes it."""
    hidden: tuple[Path, ...] = ()
    """Folders that an agent must not see: the run's own folder, the user's problem folders."""
    visible: tuple[Path, ...] = ()
    """Paths in the user's home that an agent may see (``--agent-sees``): its program, its credentials."""
    checks: int = 50
    """How often an agent may ask ``judge`` (``--agent-checks``)."""
    peaks: Mapping[str, Any] | None = None
    """Measured peaks of the device; None where nothing is judged or measured."""


class Stop(StrEnum):
    """Why a reply ended."""

    END = "end"
    MAX_TOKENS = "max tokens"
    REFUSED = "refused"
    CUT_OFF = "cut off"
    """The connection or the process ended in the middle; what had come is kept."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one reply; None where the provider did not say. The three kinds of input are disjoint."""

    input_tokens: int | None = None
    """Neither read from a cache nor written to one."""
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    output_tokens: int | None = None
    """Thinking included."""


@dataclass(frozen=True)
class Reply:
    """What a model said, whole, before anything is read from it."""

    text: str
    model_id: str
    """The exact id that answered, as the provider names it."""
    stop: Stop = Stop.END
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    """Seconds from sending the request to the last byte."""
    batch: bool = False
    """Asked through a provider's batch interface, at its price."""
    detail: str = ""
    """More about ``stop``, in the provider's words."""
    code: str | None = None
    """The kernel where it came apart from the text: an agent's ``kernel.py``."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Further facts to store: an agent's exit code, its checks, whether it was confined."""


class NotAnswered(Exception):
    """No reply to this one question, after retries: a rate limit, an overloaded server, a lost connection.

    The model is not to blame: the sample stays unanswered and is asked again by ``--resume``.
    """


class Unanswerable(Exception):
    """The provider refuses this one question for good (too long, not allowed): the sample's outcome is ``no code``."""


class ModelClient(ABC):
    """A model that can be asked, from several threads at once. Whatever asks one derives from it."""

    model: str
    """The name under which results are stored: what stood behind ``--model``."""
    model_id: str
    """The model's id, as the provider names it."""
    timed: bool = True
    """Whether its kernels are timed."""
    batches: ClassVar[bool] = False
    """Whether ``ask_many`` is implemented."""
    is_agent: ClassVar[bool] = False
    """Whether it works with files in a folder of its own, and its prompts say so."""

    @property
    @abstractmethod
    def endpoint(self) -> str:
        """Key of the price table: ``anthropic``, ``openai``, a host name; empty where nothing is paid."""

    @abstractmethod
    def ready(self) -> None:
        """Raises ModelError, within a second and without a request, when SDK, key or program is missing."""

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        """Ids of the problems it can be asked about, of those selected; ``chosen``: they were named with --problems.

        Raises ModelError when none is.
        """
        return ids

    def recorded(self) -> tuple[int, int] | None:
        """Samples and rounds of the run whose replies it repeats; None where somebody is asked now."""
        return None

    @abstractmethod
    def ask(self, question: Question) -> Reply:
        """One reply.

        Raises NotAnswered, Unanswerable, or ModelError when no question of this run can be answered (a wrong key, an
        unknown model).
        """

    def ask_many(
        self, questions: Sequence[Question], say: Callable[[str], None]
    ) -> Iterator[tuple[Question, Reply | NotAnswered | Unanswerable]]:
        """Replies to all questions through the batch interface, each as soon as it is known. Raises ModelError as
        ``ask`` does.
        """
        raise NotImplementedError("there is no batch interface")

    @abstractmethod
    def close(self) -> None:
        """Abort running requests: an ``ask`` of another thread raises NotAnswered soon."""
