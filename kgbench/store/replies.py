"""Stored prompts and replies of a run folder."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from kgbench.core.details.absence import CodeProblem, NoCode
from kgbench.llm.conversation import Prompt, Reply, Stop, Turn, Usage
from kgbench.store.errors import StoreError
from kgbench.store.layout import REPLIES_DIR, sample_name


@dataclass(frozen=True)
class StoredReply:
    """The reply to one question, and the kernel found in it."""

    reply: Reply | None
    """None when the provider refused the question."""
    code: str | None
    """Source of the kernel; None when there is none."""
    why: str
    """How the kernel was found, or why there is none."""
    usd: float | None
    """Cost in US dollars; None when the price is unknown."""
    prompt_sha256: str
    problem: CodeProblem | None = None
    """Why there is no kernel. None when there is one, and in replies that an older version stored."""

    @property
    def no_code(self) -> NoCode:
        """The detail of the outcome ``no code``."""
        return NoCode(self.problem, self.why)


def read_reply(run: Path, problem_id: str, sample: int, round: int) -> StoredReply | None:
    """A stored reply of a run; None when there is none. Raises StoreError when its file cannot be read."""
    path = run / REPLIES_DIR / f"{sample_name(problem_id, sample, round)}.json"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        reply = data["reply"]
        if reply is not None:
            reply = Reply(**{**reply, "stop": Stop(reply["stop"]), "usage": Usage(**reply["usage"])})
        problem = CodeProblem(data["problem"]) if data.get("problem") else None
        return StoredReply(reply, data["code"], data["why"], data["usd"], data["prompt_sha256"], problem)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        words = f"{path}: no stored reply can be read: {error}; remove the file, and the question is asked again"
        raise StoreError("KGB560", words) from error


def read_prompt(run: Path, problem_id: str, sample: int, round: int = 0) -> Prompt | None:
    """The stored prompt of a sample; None when there is none or it cannot be read."""
    path = run / REPLIES_DIR / f"{sample_name(problem_id, sample, round)}.json"
    try:
        said = json.loads(path.read_text(encoding="utf-8"))["asked"]["prompt"]
        return Prompt(said["system"], tuple(Turn(**turn) for turn in said["turns"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
