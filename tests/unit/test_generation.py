"""Asking a model: what is asked, kept, stopped and continued. A scripted client answers; the folder is real."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from kgbench.cli.asking import asked_provider
from kgbench.core.details.absence import CodeProblem
from kgbench.core.details.values import Mismatch
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.core.types import CaseResult, Key, Result
from kgbench.llm import prices
from kgbench.llm.conversation import NotAnswered, Question, Reply, Sampling, Stop, Unanswerable, Usage
from kgbench.llm.prices import Price
from kgbench.models.candidate_queue import Work
from kgbench.models.generation import Conversations, GenerationConfig, ModelProvider
from kgbench.models.provider import ModelError
from kgbench.models.providers.replay import Recorded
from kgbench.models.reply_kernels import kernel_of
from kgbench.problem.model import Problem
from kgbench.problem.registry import load_problem
from kgbench.store.errors import StoreError
from kgbench.store.replies import read_reply
from kgbench.store.writer import RunStore

KERNEL = "```python\ndef {name}(*args):\n    return None\n```"
DOLLAR_A_REPLY = Price(input=0.0, output=1_000_000 / 1_000, cache_read=0.0, cache_write=0.0, batch=0.5)
"""1,000 tokens of output cost one dollar."""


@dataclass
class Scripted:
    """Answers by a function; counts what it was asked."""

    answer: Callable[[Question], Reply | str]
    model: str = "scripted"
    model_id: str = "scripted-1"
    timed: bool = False
    endpoint: str = ""
    batches: bool = False
    asked: list[Question] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def ready(self) -> None:
        pass

    def ask(self, question: Question) -> Reply:
        with self.lock:
            self.asked.append(question)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            said = self.answer(question)
            usage = Usage(10, 0, 0, 1_000)
            return said if isinstance(said, Reply) else Reply(said, "scripted-1-20260101", usage=usage)
        finally:
            with self.lock:
                self.at_once -= 1

    def ask_many(
        self, questions: Sequence[Question], say: Callable[[str], None]
    ) -> Iterator[tuple[Question, Reply | NotAnswered | Unanswerable]]:
        for question in questions:
            try:
                yield question, self.ask(question)
            except (NotAnswered, Unanswerable) as error:
                yield question, error

    def close(self) -> None:
        pass


class Silent:
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def asked(self, problem: str) -> None:
        pass

    def answered(self, problem: str, sample: int, round: int, words: str, usd: float | None) -> None:
        pass


@pytest.fixture(scope="module")
def problems() -> tuple[Problem, ...]:
    names = ("cublasSdot_v2", "cublasSscal_v2", "cublasSaxpy_v2")
    return tuple(load_problem(problems_dir() / "cublas" / f"{name}.yaml") for name in names)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RunStore]:
    store = RunStore.create(tmp_path / "runs", "20260102T030405Z-ab12cd", {}, seed="s")
    yield store
    store.release()


def kernel(question: Question) -> str:
    return KERNEL.format(name=question.problem.overloads[0].signature.name)


def wrong(work: Work) -> Result:
    candidate = work.candidate
    mismatch = Mismatch("result", (3,), "1.25", "7.625", "0.001", 0.5, (8,), "float32")
    case = CaseResult("check-0", "", "check", "float32", {"n": 8}, Outcome.WRONG_VALUE, detail=mismatch)
    outcome = candidate.outcome or Outcome.WRONG_VALUE
    return Result(
        work.problem.id, candidate.model, candidate.sample, outcome, cases=() if candidate.outcome else (case,),
        round=candidate.round, detail=candidate.detail,
    )  # fmt: skip


def drive(
    asker: Scripted,
    problems: Sequence[Problem],
    store: RunStore,
    *,
    done: dict[Key, Result] | None = None,
    judge: Callable[[Work], Result] = wrong,
    **asking: object,
) -> tuple[list[Work], Conversations, Silent]:
    """As the coordinator does, with ``judge`` in place of a session."""
    provider = ModelProvider(asker, GenerationConfig(**asking))  # type: ignore[arg-type]
    feed, events, watcher = provider.feed(problems, done or {}, store), queue.SimpleQueue[None](), Silent()
    taken = []
    feed.start(lambda: events.put(None), watcher, None)
    while not feed.finished:
        events.get(timeout=10)
        while (work := feed.take()) is not None:
            taken.append(work)
            feed.judged(work, judge(work))
    feed.close()
    return taken, feed, watcher


def test_each_sample_of_each_problem_is_asked_once_and_kept_whole(
    problems: tuple[Problem, ...], store: RunStore
) -> None:
    asker = Scripted(lambda question: f"before\n{kernel(question)}\nafter")
    taken, feed, _ = drive(asker, problems, store, samples=2)
    keys = {work.key for work in taken}
    assert keys == {(p.id, "scripted", sample, 0) for p in problems for sample in range(2)}
    assert len(asker.asked) == 6
    assert feed.left == ""
    for work in taken:
        stored = read_reply(store.path, work.problem.id, work.candidate.sample, 0)
        assert stored is not None
        assert stored.reply is not None
        assert stored.reply.text.startswith("before\n")
        assert stored.code == work.candidate.source_text
        assert work.candidate.generation is not None
        assert work.candidate.generation.model_id == "scripted-1-20260101"
        assert work.candidate.generation.output_tokens == 1_000
        assert work.candidate.generation.prompt_sha256 == asker.asked[0].prompt.sha256 or len(asker.asked) > 1


def test_a_reply_without_code_is_an_outcome_and_its_text_is_kept(
    problems: tuple[Problem, ...], store: RunStore
) -> None:
    taken, _, _ = drive(Scripted(lambda question: "I would rather not."), problems[:1], store)
    [work] = taken
    assert work.candidate.outcome is Outcome.NO_CODE
    assert "no code" in work.candidate.reason
    stored = read_reply(store.path, problems[0].id, 0, 0)
    assert stored is not None
    assert stored.reply is not None
    assert stored.reply.text == "I would rather not."


def test_a_cut_off_reply_says_which_limit_cut_it(problems: tuple[Problem, ...]) -> None:
    reply = Reply("Let me think about", "m", stop=Stop.MAX_TOKENS)
    found = kernel_of(problems[0], reply, Sampling(max_tokens=512))
    assert (found.code, found.problem) == (None, CodeProblem.CUT_OFF)
    assert "512 tokens (--max-tokens)" in found.why


def test_the_file_that_an_agent_wrote_comes_before_its_text(problems: tuple[Problem, ...]) -> None:
    reply = Reply(KERNEL.format(name="other"), "m", code="def mine(): pass\n")
    assert kernel_of(problems[0], reply, Sampling()).code == "def mine(): pass\n"


def test_a_reply_that_does_not_come_ends_nothing_and_is_asked_again(
    problems: tuple[Problem, ...], store: RunStore
) -> None:
    def answer(question: Question) -> str:
        if question.problem is problems[1]:
            raise NotAnswered("429: slow down")
        return kernel(question)

    taken, feed, watcher = drive(Scripted(answer), problems, store)
    assert {work.problem.id for work in taken} == {problems[0].id, problems[2].id}
    assert feed.left == "1 question is without a reply: 429: slow down"
    assert any("429" in note for note in watcher.notes)
    again = Scripted(kernel)
    done = {work.key: wrong(work) for work in taken}
    taken, feed, _ = drive(again, problems, store, done=done)
    assert [question.problem.id for question in again.asked] == [problems[1].id]
    assert [work.problem.id for work in taken] == [problems[1].id]
    assert feed.left == ""


def test_replies_without_a_verdict_are_judged_and_not_asked_for_again(
    problems: tuple[Problem, ...], store: RunStore
) -> None:
    drive(Scripted(kernel), problems, store)
    nobody = Scripted(kernel)
    taken, _, _ = drive(nobody, problems, store)
    assert nobody.asked == []
    assert len(taken) == 3


def test_a_refused_question_is_an_outcome_without_further_rounds(
    problems: tuple[Problem, ...], store: RunStore
) -> None:
    def answer(question: Question) -> str:
        raise Unanswerable("the prompt is too long")

    asker = Scripted(answer)
    taken, feed, _ = drive(asker, problems[:1], store, rounds=3)
    [work] = taken
    assert work.candidate.outcome is Outcome.NO_CODE
    assert "too long" in work.candidate.reason
    assert work.candidate.generation is None
    assert len(asker.asked) == 1
    assert feed.left == ""


def test_a_wrong_key_stops_the_asking_and_is_raised_when_all_is_judged(
    problems: tuple[Problem, ...], store: RunStore
) -> None:
    def answer(question: Question) -> str:
        if question.problem is problems[0]:
            return kernel(question)
        raise ModelError("KGB534", "the key is not valid")

    asker = Scripted(answer)
    with pytest.raises(ModelError, match="the key is not valid"):
        drive(asker, problems, store, concurrency=1)
    assert len(asker.asked) == 2, "nothing is asked after it"
    assert store.read_reply(problems[0].id, 0, 0) is not None


def test_a_failure_of_ours_in_a_thread_is_not_swallowed(problems: tuple[Problem, ...], store: RunStore) -> None:
    def answer(question: Question) -> str:
        raise ZeroDivisionError

    with pytest.raises(RuntimeError, match="inside kgbench"):
        drive(Scripted(answer), problems, store)


def test_a_full_disk_stops_the_asking(
    problems: tuple[Problem, ...], store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kgbench.store.writer.write_atomically", full)
    asker = Scripted(kernel)
    with pytest.raises(Exception, match="No space left"):
        drive(asker, problems, store, concurrency=1)
    assert len(asker.asked) == 1


def test_no_more_than_concurrency_are_under_way(problems: tuple[Problem, ...], store: RunStore) -> None:
    barrier = threading.Barrier(2)

    def answer(question: Question) -> str:
        barrier.wait(timeout=10)  # only two at once get through
        return kernel(question)

    asker = Scripted(answer)
    drive(asker, problems, store, samples=2, concurrency=2)
    assert asker.most_at_once == 2


class TestRounds:
    def test_the_next_round_is_told_the_kernel_and_the_verdict_and_no_value(
        self, problems: tuple[Problem, ...], store: RunStore
    ) -> None:
        asker = Scripted(kernel)
        taken, _, _ = drive(asker, problems[:1], store, rounds=3)
        assert [work.candidate.round for work in taken] == [0, 1, 2]
        first, second, third = (question.prompt for question in asker.asked)
        assert len(first.turns) == 1
        assert [turn.role for turn in second.turns] == ["user", "assistant", "user"]
        assert len(third.turns) == 3, "only the last kernel goes along"
        assert second.turns[0] == first.turns[0]
        assert "def cublasSdot_v2" in second.turns[1].text
        assert "wrong value" in second.turns[2].text
        assert "7.6" not in second.text, "what was wanted"
        assert "0.001" not in second.text, "the limit"

    def test_a_run_goes_on_in_the_middle_of_its_rounds(self, problems: tuple[Problem, ...], store: RunStore) -> None:
        taken, _, _ = drive(Scripted(kernel), problems[:1], store, rounds=1)
        done = {work.key: wrong(work) for work in taken}
        asker = Scripted(kernel)
        taken, _, _ = drive(asker, problems[:1], store, done=done, rounds=2)
        assert [question.round for question in asker.asked] == [1]
        assert len(asker.asked[0].prompt.turns) == 3
        assert [work.candidate.round for work in taken] == [1]

    def test_a_round_without_code_is_told_so(self, problems: tuple[Problem, ...], store: RunStore) -> None:
        asker = Scripted(lambda question: "nonsense")
        drive(asker, problems[:1], store, rounds=2)
        turns = asker.asked[1].prompt.turns
        assert turns[1].text == "nonsense"
        assert "code" in turns[2].text


class TestBudget:
    @pytest.fixture(autouse=True)
    def _prices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(prices, "price_of", lambda endpoint, model_id, chosen=None: DOLLAR_A_REPLY)

    def test_asking_stops_before_the_budget_can_be_passed(self, problems: tuple[Problem, ...], store: RunStore) -> None:
        """Each reply may cost 2 dollars and costs one: after two of them a third could pass 3.5."""
        asker = Scripted(kernel, endpoint="somewhere")
        taken, feed, _ = drive(
            asker, problems, store, samples=3, sampling=Sampling(max_tokens=2_000), budget_usd=3.5, concurrency=4
        )
        assert len(asker.asked) == 2
        assert len(taken) == 2, "what was answered is judged"
        assert feed.left.startswith("7 questions are without a reply: $2.00 of --budget-usd 3.5")

    def test_what_is_under_way_is_waited_for_when_it_may_cost_less(
        self, problems: tuple[Problem, ...], store: RunStore
    ) -> None:
        """Four dollars take one request of up to 3 at a time, and after 1 and 1 there is no room for a third one."""
        asker = Scripted(kernel, endpoint="somewhere")
        _, feed, _ = drive(asker, problems, store, sampling=Sampling(max_tokens=3_000), budget_usd=4.0, concurrency=3)
        assert len(asker.asked) == 2
        assert asker.most_at_once == 1
        assert "$2.00 of" in feed.left

    def test_a_batch_that_could_pass_the_budget_is_not_sent(
        self, problems: tuple[Problem, ...], store: RunStore
    ) -> None:
        asker = Scripted(kernel, endpoint="somewhere", batches=True)
        _, feed, _ = drive(asker, problems, store, sampling=Sampling(max_tokens=2_000), budget_usd=2.0, batch=True)
        assert asker.asked == []
        assert feed.left.startswith("3 questions are without a reply")

    def test_an_unknown_price_is_not_free(
        self, problems: tuple[Problem, ...], store: RunStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(prices, "price_of", lambda endpoint, model_id, chosen=None: None)
        taken, _, _ = drive(Scripted(kernel, endpoint="somewhere"), problems[:1], store)
        assert taken[0].candidate.generation is not None
        assert taken[0].candidate.generation.usd is None


def test_a_batch_brings_each_reply_and_leaves_what_it_did_not_answer(
    problems: tuple[Problem, ...], store: RunStore
) -> None:
    def answer(question: Question) -> str:
        if question.problem is problems[0]:
            raise NotAnswered("expired")
        if question.problem is problems[1]:
            raise Unanswerable("not allowed")
        return kernel(question)

    taken, feed, _ = drive(Scripted(answer, batches=True), problems, store, batch=True)
    assert {work.problem.id: work.candidate.outcome for work in taken} == {
        problems[1].id: Outcome.NO_CODE,
        problems[2].id: None,
    }
    assert feed.left == "1 question is without a reply: expired"


def test_an_agent_is_judged_by_the_runs_referee_and_sees_no_run(
    problems: tuple[Problem, ...], store: RunStore, tmp_path: Path
) -> None:
    told: list[tuple[str, str, str]] = []
    earlier = RunStore.create(store.path.parent, "20250102T030405Z-earlier", {}, seed="s")
    earlier.release()

    def judge(problem: Problem, text: str, by: str) -> Result:
        told.append((problem.id, text, by))
        return Result(problem.id, by, 0, Outcome.PASSED)

    asker = Scripted(lambda question: question.judge("text") and kernel(question) if question.judge else "no")
    provider = ModelProvider(asker, GenerationConfig(hidden=(tmp_path / "mine",), checks=7))
    feed, events = provider.feed(problems[:1], {}, store), queue.SimpleQueue[None]()
    feed.start(lambda: events.put(None), Silent(), judge)
    events.get(timeout=10)
    assert feed.take() is not None
    feed.close()
    [question] = asker.asked
    assert told == [(problems[0].id, "text", "scripted/practice/0/0")]
    assert question.hidden == (tmp_path / "mine", earlier.path, store.path)
    assert question.checks == 7


def test_a_damaged_reply_is_named_with_what_to_do(problems: tuple[Problem, ...], store: RunStore) -> None:
    drive(Scripted(kernel), problems[:1], store)
    [path] = (store.path / "replies").rglob("*.json")
    path.write_text("{", encoding="utf-8")
    with pytest.raises(StoreError, match="asked again"):
        store.read_reply(problems[0].id, 0, 0)


def test_a_recorded_run_is_judged_however_it_was_asked(problems: tuple[Problem, ...], tmp_path: Path) -> None:
    asked = {"asking": {"samples": 4, "rounds": 2}, "model": "claude"}
    store = RunStore.create(tmp_path, "20260102T030405Z-ab12cd", {"asked": asked, "model": "claude"}, seed="s")
    store.release()
    words = {
        "samples": 1, "rounds": 1, "temperature": None, "max_tokens": 1000, "thinking": None, "reply_timeout_s": 1.0,
        "concurrency": 1, "budget_usd": 1.0, "batch": True, "language": "triton", "shots": 0, "bench_shapes": True,
        "target_gpu": "", "agent_checks": 1, "agent_sees": [],
    }  # fmt: skip
    provider = asked_provider(Recorded(store.path, "claude"), words, problems, ())
    assert (provider.asking.samples, provider.asking.rounds) == (4, 2)
    assert (provider.asking.batch, provider.asking.budget_usd) == (False, None)


def test_closing_in_the_middle_asks_for_nothing_more(problems: tuple[Problem, ...], store: RunStore) -> None:
    go_on = threading.Event()

    def answer(question: Question) -> str:
        go_on.wait(timeout=10)
        raise NotAnswered("closed")

    asker = Scripted(answer)
    close = asker.close
    asker.close = lambda: (go_on.set(), close())[1]  # type: ignore[method-assign]
    provider = replace(ModelProvider(asker, GenerationConfig(concurrency=1)))
    feed = provider.feed(problems, {}, store)
    feed.start(lambda: None, Silent(), None)
    feed.close()
    assert len(asker.asked) <= 1
