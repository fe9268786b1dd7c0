"""Asking a model: samples, rounds, what a reply becomes, and what may be spent. A ``Feed`` for the coordinator.

A *chain* is one sample of one problem. Its first question is the prompt; each further round carries the model's last
kernel and the verdict on it. Every reply is stored whole before anything is read from it, so that a run that is ended
in any way asks for nothing twice. No reply ends a run: what went wrong with one is that sample's outcome, or leaves it
unanswered until ``--resume``; only what no question could be answered with (a wrong key) stops the asking.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from kgbench.core.details.absence import CodeProblem
from kgbench.core.errors import KgbenchError
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Key, Result
from kgbench.llm import prices
from kgbench.llm.conversation import (
    RECORDED_PROMPT,
    RECORDED_USD,
    ModelClient,
    NotAnswered,
    Prompt,
    Question,
    Reply,
    Sampling,
    Unanswerable,
)
from kgbench.models.candidate_queue import Judge, Watcher, Work
from kgbench.models.provider import Candidate
from kgbench.models.reply_kernels import generation_of, kernel_of, next_turns, reply_words
from kgbench.problem.model import Problem
from kgbench.prompts.facts import TorchFacts
from kgbench.prompts.render import PromptOptions, prompt_for
from kgbench.prompts.tokens import estimated_tokens
from kgbench.store.layout import RUN_FILE
from kgbench.store.replies import StoredReply
from kgbench.store.writer import RunStore

Chain = tuple[str, int]
"""Problem and sample: one conversation of up to ``rounds`` questions."""


@dataclass(frozen=True)
class GenerationConfig:
    """What the command line says about asking a model."""

    samples: int = 1
    rounds: int = 1
    sampling: Sampling = field(default_factory=Sampling)
    concurrency: int = 8
    budget_usd: float | None = None
    batch: bool = False
    options: PromptOptions = field(default_factory=PromptOptions)
    checks: int = 50
    visible: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()

    def requests(self, problems: int) -> int:
        return problems * self.samples * self.rounds


@dataclass(frozen=True)
class ModelProvider:
    """A model and how it is asked, in place of a provider of finished candidates."""

    asker: ModelClient
    asking: GenerationConfig
    facts: TorchFacts | None = None
    """What PyTorch says about its operators."""
    notes: Sequence[str] = ()
    _prompts: dict[str, Prompt] = field(default_factory=dict, repr=False, compare=False)

    @property
    def model(self) -> str:
        return self.asker.model

    @property
    def timed(self) -> bool:
        return self.asker.timed

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        return ids

    def samples_of(self, problem_id: str) -> int:
        return self.asking.samples

    def prompt(self, problem: Problem) -> Prompt:
        """What the first round of a problem is asked with."""
        if problem.id not in self._prompts:
            self._prompts[problem.id] = prompt_for(problem, self.asking.options, self.facts)
        return self._prompts[problem.id]

    @cached_property
    def price(self) -> prices.Price | None:
        return prices.price_of(self.asker.endpoint, self.asker.model_id)

    def chains(self, problems: Iterable[Problem]) -> list[Chain]:
        return [(problem.id, sample) for problem in problems for sample in range(self.asking.samples)]

    def feed(
        self,
        problems: Sequence[Problem],
        done: Mapping[Key, Result],
        store: RunStore,
        chains: Sequence[Chain] | None = None,
    ) -> Conversations:
        """``chains``: what is asked of these problems; None asks for all samples."""
        return Conversations(self, problems, done, store, self.chains(problems) if chains is None else chains)


class Conversations:
    """Asks all chains of a run, several at a time, and hands out what they bring. A ``Feed``.

    ``take``, ``judged``, ``finished`` and ``close`` are the coordinator's; threads of its own ask.
    """

    def __init__(
        self,
        provider: ModelProvider,
        problems: Sequence[Problem],
        done: Mapping[Key, Result],
        store: RunStore,
        chains: Sequence[Chain],
    ) -> None:
        self.provider = provider
        self._chains = chains
        self._problems = {problem.id: problem for problem in problems}
        # The other runs beside it hold kernels, too.
        self._runs = tuple(sorted(file.parent for file in store.path.parent.glob(f"*/{RUN_FILE}")))
        self._done = done
        self._store = store
        self._ready: deque[Work] = deque()
        self._under_way: set[Chain] = set()
        """Chains for which a reply or a verdict is outstanding."""
        self._change = threading.Condition()
        self._reserved_usd = self._spent_usd = 0.0
        self._unanswered = 0
        self._stopped = ""
        self._error: BaseException | None = None
        self._closed = False
        self._judge: Judge | None = None
        self._threads = ThreadPoolExecutor(max_workers=provider.asking.concurrency, thread_name_prefix="ask")

    # --- the coordinator's side ---

    def start(self, wake: Callable[[], None], watcher: Watcher, judge: Judge | None) -> None:
        self._wake, self._watcher, self._judge = wake, watcher, judge
        first = [question for chain in self._chains if (question := self._advance(chain, 0)) is not None]
        if self.provider.asking.batch and first:
            self._threads.submit(self._guarded, self._ask_batch, first)
        else:
            for question in first:
                self._threads.submit(self._guarded, self._ask, [question])

    def take(self) -> Work | None:
        with self._change:
            return self._ready.popleft() if self._ready else None

    @property
    def finished(self) -> bool:
        with self._change:
            return not self._under_way

    @property
    def left(self) -> str:
        if not self._unanswered:
            return ""
        words = "1 question is" if self._unanswered == 1 else f"{self._unanswered} questions are"
        return f"{words} without a reply" + (f": {self._stopped}" if self._stopped else "")

    def judged(self, work: Work, result: Result) -> None:
        candidate = work.candidate
        chain = (work.problem.id, candidate.sample)
        if candidate.outcome is Outcome.NO_CODE and candidate.generation is None:
            with self._change:
                self._under_way.discard(chain)  # the provider refuses this question for good
            return
        question = self._advance(chain, candidate.round + 1, result)
        if question is not None:
            self._threads.submit(self._guarded, self._ask, [question])

    def dropped(self, work: Work) -> None:
        """Nobody judges it here, so its chain ends."""
        with self._change:
            self._under_way.discard((work.problem.id, work.candidate.sample))

    def close(self) -> None:
        with self._change:
            self._closed = True
            self._change.notify_all()
        self.provider.asker.close()
        self._threads.shutdown(cancel_futures=True)
        if isinstance(self._error, KgbenchError):
            raise self._error
        if self._error is not None:
            raise RuntimeError("asking a model failed inside kgbench") from self._error

    # --- from one round to the next ---

    def _advance(self, chain: Chain, number: int, verdict: Result | None = None) -> Question | None:
        """Continue a chain at a round, as far as replies and verdicts exist; returns the next question.

        A reply without a verdict is handed out. None where nothing is to be asked.
        """
        problem, sample = self._problems[chain[0]], chain[1]
        while number < self.provider.asking.rounds:
            stored = self._store.read_reply(problem.id, sample, number)
            if stored is None:
                with self._change:
                    self._under_way.add(chain)
                return self._question(problem, sample, number, verdict)
            verdict = self._done.get((problem.id, self.provider.model, sample, number))
            if verdict is None:
                self._hand_out(problem, sample, number, stored)
                return None
            number += 1
        with self._change:
            self._under_way.discard(chain)
        return None

    def _question(self, problem: Problem, sample: int, number: int, verdict: Result | None) -> Question:
        asking, judge = self.provider.asking, self._judge
        prompt = self.provider.prompt(problem)
        peaks = (self._store.info.get("device") or {}).get("peaks")
        if verdict is not None:
            last = self._store.read_reply(problem.id, sample, number - 1)
            prompt = replace(prompt, turns=(*prompt.turns, *next_turns(problem, last, verdict, peaks)))
        by = f"{self.provider.model}/practice/{sample}/{number}"
        return Question(
            problem,
            sample,
            number,
            prompt,
            asking.sampling,
            judge=None if judge is None else lambda text: judge(problem, text, by),
            folder=self._store.agent_dir(problem.id, sample, number),
            hidden=(*asking.hidden, *self._runs),
            visible=asking.visible,
            checks=asking.checks,
            peaks=peaks,
        )

    def _hand_out(self, problem: Problem, sample: int, number: int, stored: StoredReply) -> None:
        generation = None if stored.reply is None else generation_of(stored.reply, stored.usd, stored.prompt_sha256)
        candidate = Candidate(problem.id, self.provider.model, sample, round=number, generation=generation)
        if stored.code is not None:
            candidate = replace(candidate, source_text=stored.code)
        else:
            candidate = replace(candidate, outcome=Outcome.NO_CODE, detail=stored.no_code)
        with self._change:
            self._under_way.add((problem.id, sample))
            self._ready.append(Work(problem, candidate))
        self._wake()

    # --- asking; in threads ---

    def _guarded(self, ask: Callable[[list[Question]], None], questions: list[Question]) -> None:
        """An exception in a thread stops the asking and is raised by ``close``."""
        try:
            ask(questions)
        except BaseException as error:
            with self._change:
                self._error = self._error or error
                self._stopped = self._stopped or str(error).partition("\n")[0]
                self._closed = True
                self._change.notify_all()

    def _ask(self, questions: list[Question]) -> None:
        """One question of a chain."""
        [question] = questions
        with self._paid_for(questions) as unanswered:
            if not unanswered:
                return
            try:
                self._keep(question, self.provider.asker.ask(question))
            except Unanswerable as error:
                self._keep(question, error)
            except NotAnswered as error:
                self._not_answered(question, error)
                return
            unanswered.clear()

    def _ask_batch(self, questions: list[Question]) -> None:
        with self._paid_for(questions) as unanswered:
            if not unanswered:
                return
            for question, reply in self.provider.asker.ask_many(questions, self._watcher.note):
                if isinstance(reply, NotAnswered):
                    self._not_answered(question, reply)
                else:
                    self._keep(question, reply)
                    unanswered.remove(question)

    def _keep(self, question: Question, reply: Reply | Unanswerable) -> None:
        """Stores a reply whole, reads the kernel from it and hands it out."""
        if isinstance(reply, Unanswerable):
            stored = StoredReply(None, None, str(reply), None, question.prompt.sha256, CodeProblem.NO_REPLY)
        else:
            sha256 = str(reply.facts.get(RECORDED_PROMPT, question.prompt.sha256))
            found = kernel_of(question.problem, reply, question.sampling)
            stored = StoredReply(reply, found.code, found.why, self._usd(reply), sha256, found.problem)
        self._store.save_reply(question, stored)
        with self._change:
            self._spent_usd += stored.usd or 0.0
        words = reply_words(stored)
        self._watcher.answered(question.problem.id, question.sample, question.round, words, stored.usd)
        self._hand_out(question.problem, question.sample, question.round, stored)

    def _not_answered(self, question: Question, error: NotAnswered) -> None:
        if not self._closed:
            self._watcher.note(f"{question.problem.id} sample {question.sample}: no reply: {error}")
        with self._change:
            self._stopped = self._stopped or str(error)

    # --- what may be spent ---

    @contextlib.contextmanager
    def _paid_for(self, questions: Sequence[Question]) -> Iterator[list[Question]]:
        """Reserve the most that these questions can cost while they run. What is left in the list is unanswered."""
        unanswered = list(questions)
        most = self._reserve(questions)
        try:
            yield unanswered if most is not None else []
        finally:
            with self._change:
                self._reserved_usd -= most or 0.0
                for question in unanswered:
                    self._unanswered += 1
                    self._under_way.discard((question.problem.id, question.sample))
                self._change.notify_all()
            self._wake()

    def _reserve(self, questions: Sequence[Question]) -> float | None:
        """The reserved amount; None where these may no longer be sent.

        Waits while running replies may still cost less than reserved, so that a budget is used up and never exceeded.
        """
        provider, budget = self.provider, self.provider.asking.budget_usd
        most = 0.0
        if budget is not None:
            costs = [ceiling_usd(provider.price, question.prompt, provider.asking) for question in questions]
            most = sum(cost or 0.0 for cost in costs)
        with self._change:
            while budget is not None and not self._closed and self._spent_usd + self._reserved_usd + most > budget:
                if self._reserved_usd <= 1e-9:
                    self._stopped = (
                        f"${self._spent_usd:.2f} of --budget-usd {budget:g} are spent, "
                        f"and a further request could cost ${most:.2f}"
                    )
                    return None
                self._change.wait()
            if self._closed:
                return None
            self._reserved_usd += most
        for question in questions:
            self._watcher.asked(question.problem.id)
        return most

    def _usd(self, reply: Reply) -> float | None:
        if RECORDED_USD in reply.facts:
            recorded: float | None = reply.facts[RECORDED_USD]
            return recorded
        price = prices.price_of(self.provider.asker.endpoint, reply.model_id) or self.provider.price
        return prices.usd(price, reply.usage, batch=reply.batch)


def ceiling_usd(price: prices.Price | None, prompt: Prompt, asking: GenerationConfig) -> float | None:
    """What one question can cost at most; None where the price is unknown."""
    tokens = estimated_tokens(prompt.text)
    return prices.ceiling_usd(price, tokens, asking.sampling.max_tokens, 1, asking.batch)
