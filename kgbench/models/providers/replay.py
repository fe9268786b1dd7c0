"""The replies of an earlier run, so that it can be repeated, or judged elsewhere, without a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from kgbench.llm.conversation import (
    RECORDED_PROMPT,
    RECORDED_USD,
    ModelClient,
    NotAnswered,
    Question,
    Reply,
    Unanswerable,
)
from kgbench.models.provider import ModelError
from kgbench.store.errors import StoreError
from kgbench.store.find import find_run
from kgbench.store.layout import REPLIES_DIR
from kgbench.store.reader import read_info
from kgbench.store.replies import read_reply

FORM: Final = "replay:RUN"
SUMMARY: Final = "the replies of an earlier run: its folder, a prefix of its id, or last"
RUNS: Final = Path("runs")


def provider(argument: str | None, alias: str | None = None) -> ModelClient:
    """Raises ModelError when there is no such run, or when nobody was asked in it."""
    if argument is None:
        raise ModelError("KGB570", "--model replay: name the run after a colon, for example --model replay:last")
    path = find_run(argument, RUNS)
    if not (path / REPLIES_DIR).is_dir():
        raise ModelError(
            "KGB571",
            f"--model replay:{argument}: nobody was asked in {path}, so it holds no replies; "
            f"its kernels can be judged again with --model dir:{path / 'candidates'}",
        )
    info = read_info(path)
    return Recorded(path, alias or str(info.get("model") or info.get("asked", {}).get("model", argument)))


@dataclass
class Recorded(ModelClient):
    """Answers as somebody did before; a question of which nothing is recorded stays without a reply."""

    path: Path
    model: str
    """Whoever answered then."""
    endpoint: str = ""

    def __post_init__(self) -> None:
        self.model_id = self.model

    def recorded(self) -> tuple[int, int]:
        asked = read_info(self.path).get("asked", {}).get("asking") or {}
        return int(asked.get("samples", 1)), int(asked.get("rounds", 1))

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        """Those that were asked then. Raises ModelError where none was."""
        then = {str(each["id"]) for each in read_info(self.path).get("problems", ())}
        found = [each for each in ids if each in then]
        if not found:
            raise ModelError("KGB572", f"{self.path} asked for none of the {len(ids)} selected problems")
        return found

    def ready(self) -> None:
        """There is nothing to be missing."""

    def ask(self, question: Question) -> Reply:
        """Raises NotAnswered where nothing is recorded."""
        try:
            stored = read_reply(self.path, question.problem.id, question.sample, question.round)
        except StoreError as error:
            raise NotAnswered(str(error)) from error
        if stored is None:
            raise NotAnswered(f"{self.path} holds no reply to it")
        if stored.reply is None:
            raise Unanswerable(stored.why)
        then = {RECORDED_USD: stored.usd, RECORDED_PROMPT: stored.prompt_sha256}
        return replace(stored.reply, facts={**stored.reply.facts, **then})

    def close(self) -> None:
        """Nothing is under way for long."""
