"""A run on a cluster, with Ray and sessions played in this process: who judges what, and what becomes of what is lost.

tests/harness/test_ray.py has a real cluster.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kgbench import __version__
from kgbench.cluster import device as device_module
from kgbench.cluster import session as session_module
from kgbench.cluster.actor import Hello, Judged, Opened, Refusal, code_sha256
from kgbench.cluster.alike import device_differences, kgbench_difference
from kgbench.cluster.queue import MOST_OVERTAKEN, Slot, Task, TaskQueue
from kgbench.cluster.session import RaySession
from kgbench.core.details.absence import Fault, HarnessTrouble
from kgbench.core.errors import KgbenchError, MachineError, UsageError
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.harness.machine.settings import Job
from kgbench.harness.session.errors import SessionClosed
from kgbench.harness.session.session import Settings
from tests.unit.fake_ray import FakeRay
from tests.unit.made_results import result
from tests.unit.test_cli_run import FACTS, problem

FACTS_HERE = {**FACTS, "name": "EPYC", "sandbox": {"level": "full"}, "devices": [{"name": "CPU", "uuid": ""}]}


def job(name: str = "t", sample: int = 0) -> Job:
    return Job(problem(name), "m", sample, "def t(): ...")


class Node:
    """Stands for ``DeviceActor``; what it does can be set."""

    def __init__(self, name: str, **facts: Any) -> None:
        self.name = name
        self.facts = {**FACTS_HERE, **facts}
        self.greeting = Hello(__version__, code_sha256(), name, ())
        self.greets_after_s = 0.0
        self.jobs = 1
        self.words: list[str] = []
        self.opening: Callable[[], Opened | Refusal | None] = lambda: None
        self.judging: Callable[[Job], Judged | Refusal | None] = lambda job: None
        self.judged: list[Job] = []
        self.settings = Settings()
        self.closed = False

    def hello(self, folders: tuple[str, ...]) -> Hello:
        time.sleep(self.greets_after_s)
        return replace(self.greeting, lacks=tuple(each for each in folders if "missing" in each))

    def open(self, settings: Settings, folders: tuple[str, ...]) -> Opened | Refusal:
        self.settings = settings
        return self.opening() or Opened(self.facts, self.jobs)

    def said(self) -> list[str]:
        words, self.words = self.words, []
        return words

    def judge(self, job: Job) -> Judged | Refusal:
        answer = self.judging(job)
        self.judged.append(job)
        return answer or Judged(replace(result(job.problem_id), sample=job.sample), 0.5 * len(self.judged))

    def close(self) -> None:
        self.closed = True


class Field:
    """Nodes by name; each is made again for every actor that is started there."""

    def __init__(self, *names: str, **resources: int) -> None:
        self.made: list[Node] = []
        self.prepare: Callable[[Node], None] = lambda node: None
        self.ray = FakeRay(self._make, names or ("a", "b"), **resources)
        self.said: queue.SimpleQueue[str] = queue.SimpleQueue()

    def _make(self, name: str) -> Node:
        node = Node(name)
        self.prepare(node)
        self.made.append(node)
        return node

    def session(self, **given: Any) -> RaySession:
        settings = Settings(device=given.pop("device", "cpu"), say=self.said.put, **given.pop("settings", {}))
        return RaySession(self.ray.cluster, settings, **given)

    def words(self) -> str:
        found = []
        while not self.said.empty():
            found.append(self.said.get())
        return "\n".join(found)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for long."""
    monkeypatch.setattr(session_module, "LOOK_S", 0.01)
    monkeypatch.setattr(device_module, "POLL_S", 0.01)
    monkeypatch.setattr(device_module, "PENDING_S", 0.02)


def eventually(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10.0
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# --- the queue ---


def taken(waiting: TaskQueue, slot: Slot) -> str:
    task = waiting.take(slot, lambda: False)
    assert task is not None
    return task.job.problem_id.removeprefix("aten/")


def filled(*names: str) -> TaskQueue:
    waiting = TaskQueue()
    for name in names:
        waiting.put(Task(job(name), lambda phase, detail: None))
    return waiting


def test_candidates_of_one_problem_go_where_it_is_warm() -> None:
    waiting = filled("p", "q", "p", "q", "r", "q", "p")
    a, b, a1 = Slot("a", 0), Slot("b", 0), Slot("a", 1)
    assert [taken(waiting, each) for each in (a, b, a, b, a1)] == ["p", "q", "p", "q", "p"]
    # Nothing of what is warm there is left: first what is nobody's, then the oldest.
    assert [taken(waiting, a), taken(waiting, a)] == ["r", "q"]


def test_the_oldest_is_not_overtaken_for_ever() -> None:
    waiting = filled("p", "q", *["p"] * (MOST_OVERTAKEN + 10))
    slot = Slot("a", 0)
    order = [taken(waiting, slot) for _ in range(MOST_OVERTAKEN + 3)]
    assert order.index("q") == MOST_OVERTAKEN + 1


def test_a_task_that_was_lost_goes_first() -> None:
    waiting = filled("p", "p")
    task = waiting.take(Slot("a", 0), lambda: False)
    assert task is not None
    waiting.put(task)
    assert waiting.take(Slot("a", 0), lambda: False) is task


# --- what is alike ---


def test_what_judges_otherwise_is_named() -> None:
    other = {**FACTS_HERE, "versions": {"torch": "2.14", "cuda": "13"}, "sandbox": {"level": "none"}}
    assert list(device_differences(FACTS_HERE, other, mixed=False)) == [
        "cuda absent and 13", "torch 2.13 and 2.14", "sandbox full and none",
    ]  # fmt: skip
    gpu = {**FACTS_HERE, "name": "H100"}
    assert list(device_differences(FACTS_HERE, gpu, mixed=False)) == ["device EPYC and H100"]
    assert list(device_differences(FACTS_HERE, gpu, mixed=True)) == []
    assert list(device_differences(FACTS_HERE, {**gpu, "kind": "cuda"}, mixed=True)) == ["device cpu and cuda"]
    assert kgbench_difference(Hello(__version__, code_sha256(), "", ())) == ""
    assert "other modules" in kgbench_difference(Hello(__version__, "0", "", ()))
    assert "there" in kgbench_difference(Hello("9.9", code_sha256(), "", ()))


# --- the session ---


def test_every_candidate_is_judged_once_on_some_device() -> None:
    field = Field("a", "b", "c")
    with field.session() as session:
        eventually(lambda: session.jobs == 3)
        futures = [session.submit(job(sample=number)) for number in range(200)]
        found = [future.result(10) for future in futures]
        assert session.timed_s > 0
    assert [each.sample for each in found] == list(range(200))
    assert {each.device_name for each in found} == {"EPYC"}
    assert Counter(each.sample for node in field.made for each in node.judged) == dict.fromkeys(range(200), 1)
    assert all(node.closed for node in field.made)
    assert len(session.facts["devices"]) == 3


def test_what_a_dead_node_was_judging_is_judged_elsewhere() -> None:
    field, stuck = Field("a", "b"), threading.Event()

    def prepare(node: Node) -> None:
        if node.name == "a":
            node.judging = lambda job: stuck.wait(10) and None

    field.prepare = prepare
    with field.session() as session:
        eventually(lambda: session.jobs == 2)
        futures = [session.submit(job(sample=number)) for number in range(20)]
        eventually(lambda: any(future.done() for future in futures))
        field.ray.kill_node("a")
        assert sorted(future.result(10).sample for future in futures) == list(range(20))
        eventually(lambda: session.jobs == 1)
    stuck.set()
    assert "KGB642" in (words := field.words())
    assert "the node is gone" in words
    assert {node.name for node in field.made if node.judged and node.name == "b"} == {"b"}


def test_an_actor_that_dies_is_started_anew_on_its_node() -> None:
    field = Field("a")
    with field.session() as session:
        assert session.evaluate(job()).outcome is Outcome.PASSED
        field.ray.actors[0].die("killed by the kernel")
        assert session.evaluate(job(sample=1)).sample == 1
        assert len(field.made) == 2
    assert "KGB643" in field.words()


def test_what_ends_its_judge_again_and_again_is_a_harness_error() -> None:
    field = Field("a", "b")

    def prepare(node: Node) -> None:
        def judging(job: Job) -> None:
            if job.sample == 7:
                field.ray.actors[field.made.index(node)].die("out of memory")
                time.sleep(0.02)

        node.judging = judging

    field.prepare = prepare
    with field.session() as session:
        bad = session.submit(job(sample=7))
        good = [session.submit(job(sample=number)) for number in range(5)]
        assert [each.result(10).sample for each in good] == list(range(5))
        found = bad.result(10)
    assert found.outcome is Outcome.HARNESS_ERROR
    assert isinstance(found.detail, HarnessTrouble)
    assert found.detail.fault is Fault.LOST
    assert len([each for node in field.made for each in node.judged if each.sample == 7]) <= 3


def test_a_node_that_joins_is_checked_and_used() -> None:
    field = Field("a")
    with field.session() as session:
        field.ray.join("b")
        eventually(lambda: session.jobs == 2)
        field.prepare = lambda node: node.facts.update(versions={"torch": "2.14"})
        field.ray.join("c")
        eventually(lambda: len(field.made) == 3 and field.made[2].closed)
        assert session.jobs == 2
    words = field.words()
    assert "c (10.0.0.1, c) is left out: it is not like a (10.0.0.1, a): torch 2.13 and 2.14" in words


@pytest.mark.parametrize(
    ("mutator", "words"),
    [
        (lambda node: setattr(node, "greeting", replace(node.greeting, kgbench="9.9")), "9.9 there"),
        (lambda node: setattr(node, "opening", lambda: Refusal("KGB315: no sandbox")), "KGB315: no sandbox"),
        (lambda node: setattr(node, "opening", lambda: 1 / 0), "kgbench cannot work there: ZeroDivisionError"),
    ],
)
def test_a_cluster_on_which_nobody_can_judge_is_an_error_with_each_reason(
    mutator: Callable[[Node], None], words: str
) -> None:
    field = Field("a", "b")
    field.prepare = mutator
    with pytest.raises(MachineError, match=words) as raised, field.session():
        pass
    assert raised.value.number == "KGB332"
    assert all(f"\n  {name} (10.0.0.1, {name}): " in str(raised.value) for name in "ab")


def test_a_folder_of_problems_that_a_node_lacks_is_named() -> None:
    with pytest.raises(MachineError, match="it has no folder /missing"), Field("a").session(folders=("/missing",)):
        pass


def test_the_last_device_that_fails_ends_what_waits() -> None:
    field = Field("a")
    field.prepare = lambda node: setattr(node, "judging", lambda job: Refusal("KGB309: sick"))
    with field.session() as session, pytest.raises(MachineError, match="KGB309: sick"):
        session.evaluate(job())


def test_devices_of_several_models_only_where_that_is_asked_for() -> None:
    field = Field("a", "b", CPU=8, GPU=1)
    field.prepare = lambda node: node.facts.update(name=f"H{node.name}")
    with field.session(device="auto", mixed=True) as session:
        eventually(lambda: session.jobs == 2)
        futures = [session.submit(job(sample=number)) for number in range(50)]
        assert {future.result(10).device_name for future in futures} == {"Ha", "Hb"}
    assert {(given["num_gpus"], given["num_cpus"]) for given in field.ray.asked} == {(1, 8)}
    assert {(node.settings.device, node.settings.gpus) for node in field.made} == {("cuda", 1)}
    with field.session(device="auto") as session:
        eventually(lambda: "is not like" in field.words())
        assert session.jobs == 1


def test_every_gpu_of_a_node_is_used_and_shares_its_cores() -> None:
    field = Field("a", CPU=8, GPU=4)
    with field.session(device="cuda") as session:
        eventually(lambda: session.jobs == 4)
    assert {(given["num_gpus"], given["num_cpus"]) for given in field.ray.asked} == {(1, 2)}
    assert {node.settings.cores for node in field.made} == {2}
    limited = Field("a", CPU=8, GPU=4)
    with limited.session(device="cuda", settings={"gpus": 3}) as session:
        eventually(lambda: session.jobs == 3)
        assert len(limited.made) == 3


def test_a_node_without_a_gpu_is_named_and_one_with_is_used() -> None:
    field = Field("a", CPU=2)
    with pytest.raises(MachineError, match=r"no node of the Ray cluster .* has a GPU") as raised:
        field.session(device="cuda")
    assert raised.value.number == "KGB332"
    field.ray.join("b", CPU=2, GPU=1)
    with field.session(device="auto") as session:
        assert session.jobs == 1
    assert "KGB644: a (10.0.0.1, a) has no GPU" in field.words()
    with pytest.raises(UsageError, match="chooses GPUs of one machine"):
        field.session(device="cuda:0,1")


def test_a_device_that_is_taken_is_waited_for_and_said() -> None:
    field, free = Field("a", "b"), threading.Event()

    def prepare(node: Node) -> None:
        if node.name == "a":
            node.words = ["KGB605: GPU 0 (H100): waiting for the kgbench of user x"]
            node.opening = lambda: free.wait(10) and None

    field.prepare = prepare
    with field.session() as session:
        assert session.evaluate(job()).outcome is Outcome.PASSED
        eventually(lambda: not field.said.empty())
        assert "a (10.0.0.1, a): KGB605" in field.words()
        assert session.jobs == 1
        free.set()
        eventually(lambda: session.jobs == 2)


def test_a_resumed_run_stays_on_the_device_that_it_was_begun_with() -> None:
    like = {**FACTS_HERE, "name": "H100"}
    with pytest.raises(MachineError, match="what the run was started with: device H100 and EPYC"):
        Field("a").session(like=like).__enter__()


def test_closing_ends_whoever_waits() -> None:
    field, stuck = Field("a"), threading.Event()
    field.prepare = lambda node: setattr(node, "judging", lambda job: stuck.wait(10) and None)
    with field.session() as session:
        futures = [session.submit(job(sample=number)) for number in range(3)]
        session.close()
        for future in futures:
            with pytest.raises(SessionClosed):
                future.result(5)
        with pytest.raises(SessionClosed):
            session.evaluate(job())
    stuck.set()


def test_a_cluster_that_does_not_answer_ends_the_run() -> None:
    field = Field("a")
    field.prepare = lambda node: setattr(node, "judging", lambda job: time.sleep(0.05))

    def gone() -> Any:
        raise ConnectionError("GCS is gone")

    with field.session() as session:
        field.ray.nodes = gone  # type: ignore[method-assign]
        futures = [session.submit(job(sample=number)) for number in range(100)]
        with pytest.raises(KgbenchError) as raised:
            futures[-1].result(10)
    assert raised.value.number == "KGB333"


def test_results_are_those_of_the_device() -> None:
    def prepare(node: Node) -> None:
        node.judging = lambda job: Judged(Result(job.problem_id, "m", 0, Outcome.WRONG_VALUE), 0.0)

    field = Field("a")
    field.prepare = prepare
    with field.session() as session:
        seen: list[tuple[str, str]] = []
        found = session.evaluate(job(), lambda *what: seen.append(what))
    assert found.outcome is Outcome.WRONG_VALUE
    assert seen == [("judging", "a (10.0.0.1, a)")]
