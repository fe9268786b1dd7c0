"""Anthropic's Message Batches: many questions at half the price, answered within a day.

A batch goes on at the provider and is paid for whoever waits. So each question's folder says in which batch it was
sent, and a run that is continued looks there before it asks again.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from kgbench.llm.conversation import NotAnswered, Question, Reply, Sampling, Unanswerable
from kgbench.models.http import NotFound

# Below the 100,000 requests and 256 MB that a batch may have.
REQUESTS_PER_BATCH: Final = 2000
"""Most requests that one batch carries."""
POLL_MOST_S: Final = 60.0
"""Longest pause between two looks at a batch, in seconds."""
POLL_GROWS: Final = 1.5
"""Factor by which the pause grows after each look."""
TICKET: Final = "batch.json"

Result = Reply | NotAnswered | Unanswerable
Answers = Iterator[tuple[Question, Result]]


class BatchClient(Protocol):
    """The interface of the model's client."""

    model_id: str

    def call(self, work: Callable[[Any], Any], sampling: Sampling) -> Any: ...

    def wait(self, seconds: float) -> bool: ...

    def batch_result(self, result: Any, sampling: Sampling, seconds: float) -> Result: ...


class MessageBatches:
    """Sends, waits and collects."""

    def __init__(self, asker: BatchClient, poll_s: float, say: Callable[[str], None]) -> None:
        self.asker = asker
        self.poll_s = poll_s
        self.say = say

    def ask(self, questions: Sequence[Question], requests: Sequence[dict[str, Any]]) -> Answers:
        """Whatever happens, each question is answered for once. Raises ModelError when none can be."""
        fetched: set[int] = set()
        for batch_id, waiting in self._sent_before(questions).items():
            self.say(f"batch {batch_id}: {len(waiting)} requests were sent before")
            if self._is_there(batch_id, waiting):
                fetched |= set(map(id, waiting.values()))
                yield from self._collect(batch_id, waiting)
        pairs = [pair for pair in zip(questions, requests, strict=True) if id(pair[0]) not in fetched]
        for first in range(0, len(pairs), REQUESTS_PER_BATCH):
            yield from self._send(pairs[first : first + REQUESTS_PER_BATCH])

    def _send(self, pairs: Sequence[tuple[Question, dict[str, Any]]]) -> Answers:
        requests = [{"custom_id": f"q{number}", "params": request} for number, (_, request) in enumerate(pairs)]
        waiting = {f"q{number}": question for number, (question, _) in enumerate(pairs)}
        try:
            batch = self.asker.call(
                lambda client: client.messages.batches.create(requests=requests), pairs[0][0].sampling
            )
        except (NotAnswered, Unanswerable) as error:
            for question in waiting.values():
                yield question, NotAnswered(str(error))
            return
        for name, question in waiting.items():
            self._write_ticket(question, batch.id, name)
        self.say(f"batch {batch.id}: {len(requests)} requests sent")
        yield from self._collect(batch.id, waiting)

    def _is_there(self, batch_id: str, waiting: dict[str, Question]) -> bool:
        """Whether the provider still knows it; they are kept for some weeks."""
        try:
            self.asker.call(lambda client: client.messages.batches.retrieve(batch_id), _sampling(waiting))
        except NotAnswered:
            return True  # for all one knows
        except NotFound:
            self.say(f"batch {batch_id} is not there any more: asking again")
            return False
        return True

    def _collect(self, batch_id: str, waiting: dict[str, Question]) -> Answers:
        begun, left = time.monotonic(), dict(waiting)
        sampling = _sampling(waiting)
        lost = "the batch has no result for it"
        try:
            self._until_ended(batch_id, sampling)
            results = self.asker.call(lambda client: list(client.messages.batches.results(batch_id)), sampling)
        except (NotAnswered, Unanswerable) as error:
            lost, results = str(error), None
        for line in results or ():
            question = left.pop(line.custom_id, None)
            if question is not None:
                self._remove_ticket(question)
                yield question, self.asker.batch_result(line.result, sampling, time.monotonic() - begun)
        for question in left.values():
            if results is not None:
                self._remove_ticket(question)
            yield question, NotAnswered(lost)

    def _until_ended(self, batch_id: str, sampling: Sampling) -> None:
        wait_s, shown = self.poll_s, -1
        while True:
            try:
                batch = self.asker.call(lambda client: client.messages.batches.retrieve(batch_id), sampling)
            except NotAnswered as error:
                if self.asker.wait(0):
                    raise
                self.say(f"batch {batch_id}: {error}; looking again")  # it ends within a day
            else:
                if batch.processing_status == "ended":
                    return
                counts = batch.request_counts
                done = counts.succeeded + counts.errored + counts.canceled + counts.expired
                if done != shown:
                    self.say(f"batch {batch_id}: {done} of {done + counts.processing} done")
                    shown = done
            self.asker.wait(wait_s)
            wait_s = min(wait_s * POLL_GROWS, POLL_MOST_S)

    # --- what was sent before ---

    def _sent_before(self, questions: Sequence[Question]) -> dict[str, dict[str, Question]]:
        """Batch to name in it to question."""
        found: dict[str, dict[str, Question]] = {}
        for question in questions:
            ticket = _read(question.folder)
            if ticket.get("model_id") == self.asker.model_id and ticket.get("prompt") == question.prompt.sha256:
                found.setdefault(ticket["batch"], {})[ticket["name"]] = question
        return found

    def _write_ticket(self, question: Question, batch_id: str, name: str) -> None:
        if question.folder is None:
            return
        ticket = {
            "batch": batch_id,
            "name": name,
            "model_id": self.asker.model_id,
            "prompt": question.prompt.sha256,
        }
        question.folder.mkdir(parents=True, exist_ok=True)
        (question.folder / TICKET).write_text(json.dumps(ticket), encoding="utf-8")

    def _remove_ticket(self, question: Question) -> None:
        if question.folder is not None:
            (question.folder / TICKET).unlink(missing_ok=True)


def _sampling(waiting: dict[str, Question]) -> Sampling:
    """The sampling of all questions: a run asks all of them alike."""
    return next(iter(waiting.values())).sampling


def _read(folder: Path | None) -> dict[str, str]:
    if folder is None:
        return {}
    with contextlib.suppress(OSError, ValueError):
        ticket = json.loads((folder / TICKET).read_text(encoding="utf-8"))
        if isinstance(ticket, dict) and ticket.keys() >= {"batch", "name"}:
            return ticket
    return {}
