"""A session whose device, reference or memory fails: who is told what, and what goes on."""

from __future__ import annotations

import importlib
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Final

import pytest

from kgbench.core.details.absence import Fault, HarnessTrouble
from kgbench.core.details.failures import Breach, HostMemory, Raised, RuleBroken
from kgbench.core.details.union import Detail
from kgbench.core.errors import MachineError
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.core.types import Result
from kgbench.harness.machine import processes
from kgbench.harness.machine.devices import Device
from kgbench.harness.machine.settings import DEVICE_PROBE
from kgbench.harness.machine.shared_page import SharedPage
from kgbench.harness.machine.timing_lock import STAYS_BUSY
from kgbench.harness.referee import compiler
from kgbench.harness.session.errors import OutOfMemory, ProcessLost
from kgbench.harness.session.pools import DevicePool
from kgbench.harness.session.retry import no_room
from kgbench.harness.session.server import ForkServer
from kgbench.harness.session.session import Job, Session, Settings
from kgbench.problem.registry import load_problem
from kgbench.store.reader import read_run
from tests.harness.living import PROBLEM, RIGHT, RUN, Field
from tests.harness.sessions import SessionOf

pytestmark = [pytest.mark.torch, pytest.mark.timeout(120)]

T: Final = "def t(self):\n    return self.t()\n"
SLOW: Final = f"import time\ntime.sleep(1.5)\n{T}"
RAISES: Final = "def t(self):\n    raise RuntimeError('an illegal memory access was encountered')\n"
HUNGRY_REFERENCE: Final = """ |
  def reference(self, factor):
      import os
      if os.path.exists("{lacking}"):
          raise torch.OutOfMemoryError("CUDA out of memory")
      return self * factor
"""


def job(source: str, sample: int = 0) -> Job:
    return Job(load_problem(problems_dir() / "aten/t.yaml"), "test", sample, source)


@pytest.mark.in_turn("kgbench/harness/session/", turns=3)
def test_sick_device_is_set_aside_and_what_was_at_work_there_is_kept(
    session_of: SessionOf, fork_server: ForkServer
) -> None:
    fork_server.start()
    before, said = set(processes.descendants(os.getpid())), []
    begun = threading.Event()
    settings = Settings(
        device="cpu", jobs=2, timing=False, probe="tests.harness.trusted_functions:finds_it_sick", say=said.append
    )
    with session_of(settings) as session, ThreadPoolExecutor(1) as pool:
        assert session.evaluate(job(T)).outcome is Outcome.PASSED
        slow = pool.submit(session.evaluate, job(SLOW, 1), lambda phase, _: begun.set())
        assert begun.wait(60.0)
        broke = session.evaluate(job(RAISES, 2))
        assert slow.result().outcome is Outcome.PASSED
        with pytest.raises(MachineError, match=r"no device is left that works: .*it says 2 \+ 2 = 5"):
            session.evaluate(job(T, 3))
    assert broke.outcome is Outcome.HARNESS_ERROR
    assert broke.detail == HarnessTrouble(Fault.BROKE_DEVICE, "the device stopped working meanwhile: it says 2 + 2 = 5")
    assert len(said) == 1
    assert "is set aside: it says 2 + 2 = 5" in said[0]
    assert set(processes.descendants(os.getpid())) - before == set()


@pytest.mark.parametrize(("probe", "fault"), [(":finds_it_sick", Fault.BROKE_DEVICE), ("", Fault.LOST)])
def test_a_worker_that_does_not_start_is_the_devices_fault_where_that_is_broken(
    session_of: SessionOf, probe: str, fault: Fault
) -> None:
    functions = "tests.harness.trusted_functions"
    settings = Settings(
        device="cpu", jobs=1, timing=False, probe=f"{functions}{probe}" if probe else DEVICE_PROBE,
        referee=f"{functions}:referee_without_workers",
    )  # fmt: skip
    with session_of(settings) as session:
        found = session.evaluate(job(T))
    assert isinstance(found.detail, HarnessTrouble)
    assert found.detail.fault is fault
    assert probe or found.detail.words.startswith("the referee is gone: kgbench.harness.workers.handle.HarnessFailed: ")


@pytest.mark.in_turn("kgbench/harness/session/", turns=3)
def test_who_breaks_two_devices_is_given_no_third(session_of: SessionOf) -> None:
    settings = Settings(device="cpu", jobs=2, timing=False, probe="tests.harness.trusted_functions:finds_it_sick")
    with session_of(settings) as session:
        broke = session.evaluate(replace(job(RAISES), suspected=True))
    assert isinstance(broke.detail, HarnessTrouble)
    assert broke.detail.fault is Fault.BROKE_DEVICES


@pytest.mark.slow
@pytest.mark.usefixtures("commands_share_it")
def test_broken_reference_is_a_harness_error_of_its_own_problem_only(tmp_path: Path, fork_server: ForkServer) -> None:
    fork_server.start()
    before = set(processes.descendants(os.getpid()))
    field = Field.make(tmp_path, (RIGHT,))
    text = PROBLEM.replace('"torch.mul(self, factor)"', '"own_reference:reference"').replace("scale(", "broken(")
    (tmp_path / "problems/mine/broken.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "problems/own_reference.py").write_text(
        "def reference(self, factor):\n    raise RuntimeError('the reference is broken')\n", encoding="utf-8"
    )
    (tmp_path / "kernels/mine/broken.py").write_text(RIGHT.replace("scale", "broken"), encoding="utf-8")
    done = field.here(*RUN)
    assert done.returncode == 1, done.stderr
    found = {result.problem: result for result in field.only_run().results}
    assert {name: result.outcome for name, result in found.items()} == {
        "mine/broken": Outcome.HARNESS_ERROR,
        "mine/scale": Outcome.PASSED,
    }
    assert "the reference is broken" in found["mine/broken"].reason
    info = json.loads((read_run(field.runs()[0]).path / "run.json").read_text(encoding="utf-8"))
    assert info["status"] == "finished"
    assert set(processes.descendants(os.getpid())) - before == set()


REFERENCE_THAT_LOOKS: Final = """ |
  def reference(self, factor):
      import sys
      assert not {"torch._dynamo.eval_frame", "pydantic", "yaml"} & set(sys.modules), "imported"
      return self * factor
"""


def test_a_referee_does_without_torchs_compiler_and_what_reads_files(session_of: SessionOf, tmp_path: Path) -> None:
    Field.make(tmp_path, (), PROBLEM.replace(' "torch.mul(self, factor)"\n', REFERENCE_THAT_LOOKS))
    problem = load_problem(tmp_path / "problems/mine/scale.yaml")
    with session_of(Settings(device="cpu", jobs=1, timing=False)) as session:
        result = session.evaluate(Job(problem, "test", 0, RIGHT))
    assert result.outcome is Outcome.PASSED, result.reason


def test_the_compiler_is_there_for_a_reference_that_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shown by a package that takes less time to import."""
    for name in ("wsgiref", "wsgiref.util"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(compiler, "COMPILER", "wsgiref")
    compiler.put_off()
    stand_in = importlib.import_module("wsgiref")
    assert stand_in.disable(RIGHT, True, wrapping=False) is RIGHT
    assert not hasattr(stand_in, "__file__")
    assert sys.modules["wsgiref"] is stand_in
    assert importlib.import_module("wsgiref.util").FileWrapper
    assert sys.modules["wsgiref"] is not stand_in
    assert stand_in.util is sys.modules["wsgiref.util"]


@pytest.mark.in_turn("kgbench/harness/session/", turns=3)
def test_out_of_memory_beside_others_is_tried_again_alone_while_others_wait(session_of: SessionOf) -> None:
    """The candidate that lacks memory has it once its neighbour is gone; here, once ``enough_at`` has passed."""
    events: dict[str, list[str]] = {"slow": [], "hungry": [], "third": []}
    begun, again, alone, slow_may_end, hungry_may_end = (threading.Event() for _ in range(5))

    def hold_slow(phase: str, detail: str) -> None:
        events["slow"].append(phase)
        begun.set()
        slow_may_end.wait(60.0)

    def hold_hungry(phase: str, detail: str) -> None:
        events["hungry"].append(phase)
        if phase == "again":
            again.set()
        elif again.is_set():
            alone.set()
            hungry_may_end.wait(60.0)

    with session_of(Settings(device="cpu", jobs=3, timing=False)) as session, ThreadPoolExecutor(3) as pool:
        # All three slots are there, so that nobody waits for one to start.
        assert {each.outcome for each in pool.map(session.evaluate, [job(SLOW, n) for n in range(3)])} == {"passed"}
        slow = pool.submit(session.evaluate, job(T, 3), hold_slow)
        assert begun.wait(30.0)
        enough_at = time.time() + 6.0
        lacks = f"import time\nif time.time() < {enough_at}:\n    raise MemoryError('no room beside others')\n"
        hungry = pool.submit(session.evaluate, job(lacks + T, 4), hold_hungry)
        assert again.wait(30.0)
        time.sleep(max(0.5, enough_at - time.time()))  # whoever does not wait would go on meanwhile
        assert not alone.is_set(), "its neighbour has not ended"
        slow_may_end.set()
        assert alone.wait(30.0)
        assert slow.result(30.0).outcome is Outcome.PASSED
        third = pool.submit(session.evaluate, job(T, 5), lambda phase, _: events["third"].append(phase))
        time.sleep(0.5)
        assert events["third"] == [], "the other one has the device for itself"
        hungry_may_end.set()
        assert {each.result(30.0).outcome for each in (hungry, third)} == {Outcome.PASSED}
    assert events["third"]


@pytest.mark.in_turn("kgbench/harness/session/", turns=3)
def test_a_judge_that_lacks_memory_beside_others_judges_alone_and_fewer_at_once_follow(
    session_of: SessionOf, tmp_path: Path
) -> None:
    """The neighbour is at work until it has been found out that memory is lacking."""
    lacking = tmp_path / "lacking"
    lacking.touch()
    (tmp_path / "mine").mkdir()
    problem = tmp_path / "mine/hungry.yaml"
    reference = HUNGRY_REFERENCE.format(lacking=lacking)
    text = PROBLEM.replace(' "torch.mul(self, factor)"', reference).replace("scale(", "hungry(")
    problem.write_text(text, encoding="utf-8")
    hungry = Job(load_problem(problem), "test", 0, RIGHT.replace("scale", "hungry"))
    said: list[str] = []
    events: list[str] = []
    begun, found_out = threading.Event(), threading.Event()

    def hold(phase: str, detail: str) -> None:
        begun.set()
        found_out.wait(60.0)

    def listen(phase: str, detail: str) -> None:
        events.append(phase)
        if phase == "again":
            lacking.unlink()
            found_out.set()

    settings = Settings(device="cpu", jobs=3, timing=False, say=said.append)
    with session_of(settings) as session, ThreadPoolExecutor(3) as pool:
        alone = session.evaluate(hungry).detail  # nobody else's doing
        assert isinstance(alone, HarnessTrouble)
        assert alone.fault is Fault.NO_ROOM
        neighbour = pool.submit(session.evaluate, job(T, 3), hold)
        assert begun.wait(30.0)
        result = session.evaluate(hungry, listen)
        found_out.set()
        assert neighbour.result().outcome is Outcome.PASSED
        assert session.jobs == 2
        assert {each.outcome for each in pool.map(session.evaluate, [job(T, n) for n in range(4, 7)])} == {"passed"}
    assert result.outcome is Outcome.PASSED, result.reason
    assert events.count("again") == 1
    assert len(said) == 1
    assert "no more than 2 candidates at once" in said[0]


@pytest.mark.in_turn("kgbench/harness/session/", "kgbench/harness/referee/", turns=3)
def test_a_call_that_lacks_memory_beside_others_is_made_again_beside_them(session_of: SessionOf) -> None:
    """With all room reserved: its neighbour goes on, and ends after it."""
    lacks = (
        "calls = []\n\ndef t(self):\n    calls.append(1)\n    if len(calls) == 3:\n"
        "        raise MemoryError('no room')\n    return self.t()\n"
    )
    begun, may_end = threading.Event(), threading.Event()
    events: list[str] = []

    def hold(phase: str, detail: str) -> None:
        begun.set()
        may_end.wait(60.0)

    with session_of(Settings(device="cpu", jobs=2, timing=False)) as session, ThreadPoolExecutor(2) as pool:
        assert session.evaluate(job(lacks, 1)).outcome is Outcome.OUT_OF_MEMORY  # alone it is its own fault
        neighbour = pool.submit(session.evaluate, job(T, 2), hold)
        assert begun.wait(30.0)
        result = session.evaluate(job(lacks, 3), lambda phase, _: events.append(phase))
        assert not neighbour.done()
        may_end.set()
        assert neighbour.result(30.0).outcome is Outcome.PASSED
        assert session.jobs == 2
    assert result.outcome is Outcome.PASSED, result.reason
    assert "again" not in events


def test_out_of_memory_alone_is_the_candidates_own(session: Session) -> None:
    events: list[str] = []
    source = f"raise MemoryError('never enough')\n{T}"
    result = session.evaluate(job(source), lambda phase, _: events.append(phase))
    assert result.outcome is Outcome.OUT_OF_MEMORY
    assert "again" not in events


@pytest.mark.parametrize(
    ("outcome", "detail", "company", "judged"),
    [
        (Outcome.HARNESS_ERROR, no_room("CUDA out of memory"), True, 2),
        (Outcome.REJECTED, RuleBroken(Breach.BUSY_DEVICE), True, 2),
        (Outcome.HARNESS_ERROR, HarnessTrouble(Fault.BUSY_DEVICE, "end what else uses the GPU"), True, 3),
        (Outcome.REJECTED, RuleBroken(Breach.BUSY_DEVICE), False, 1),
        (Outcome.OUT_OF_MEMORY, HostMemory(), True, 2),
        (Outcome.HARNESS_ERROR, HarnessTrouble(Fault.LOST, STAYS_BUSY), True, 1),
        (Outcome.REJECTED, RuleBroken(Breach.PRINTED), True, 1),
        (Outcome.RUNTIME_ERROR, Raised("RuntimeError", STAYS_BUSY), True, 1),
        (Outcome.PASSED, None, True, 1),
    ],
)
def test_what_a_neighbour_may_have_done_is_judged_again_alone(
    outcome: Outcome, detail: Detail | None, company: bool, judged: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = Result("aten/t", "test", 0, outcome, detail=detail)
    times: list[bool] = []

    def evaluate(
        job: Job, on_event: object, cancellation: object, *, exclusive: bool
    ) -> tuple[Result, DevicePool | None]:
        times.append(exclusive)
        return found, pool if company else None

    pool = DevicePool(Device("cpu"), SharedPage.create(), 3)
    session = Session(Settings(device="cpu"))
    monkeypatch.setattr(session, "_evaluate", evaluate)
    assert session.evaluate(job(T)) is found
    session.close()
    pool.page.close()
    assert pool.most == 3
    assert times == {1: [False], 2: [False, True], 3: [False, False, True]}[judged]


GONE = "the referee is gone: end of stream\n::error ::x"
KILLED = ProcessLost(GONE, without_a_word=True)
RAISED = ProcessLost(GONE)
LACKS_MEMORY = OutOfMemory("no room\n::error ::x")


@pytest.mark.parametrize(
    ("ends", "library_survives", "outcome"),
    [
        ((KILLED, KILLED), True, Outcome.REJECTED),
        ((KILLED, KILLED), False, Outcome.HARNESS_ERROR),
        ((KILLED, RAISED), True, Outcome.HARNESS_ERROR),
        ((RAISED, RAISED), True, Outcome.HARNESS_ERROR),
        ((KILLED,), True, Outcome.PASSED),
        ((LACKS_MEMORY,), True, Outcome.PASSED),
        ((LACKS_MEMORY, LACKS_MEMORY), True, Outcome.OUT_OF_MEMORY),
        ((LACKS_MEMORY, KILLED), True, Outcome.OUT_OF_MEMORY),
        ((LACKS_MEMORY, LACKS_MEMORY), False, Outcome.HARNESS_ERROR),
        ((LACKS_MEMORY, RAISED), True, Outcome.HARNESS_ERROR),
    ],
)
def test_who_ends_its_referee_twice_is_blamed_unless_the_library_does_too(
    ends: tuple[Exception, ...], library_survives: bool, outcome: Outcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the referee's own is ours; a second attempt decides."""
    left = [*ends]
    asked: list[str | None] = []

    def judged(slot: object, job: Job, on_event: object, cancellation: object) -> Result:
        asked.append(job.trusted)
        if job.trusted == "baseline":
            if library_survives:
                return Result(job.problem_id, "test", 0, Outcome.PASSED)
            raise ProcessLost("the referee is gone")
        if left:
            raise left.pop(0)
        return Result(job.problem_id, "test", 0, Outcome.PASSED)

    pool = DevicePool(Device("cpu"), SharedPage.create(), 3)
    session = Session(Settings(device="cpu"))
    monkeypatch.setattr(session, "_judge", judged)
    monkeypatch.setattr(session._slots, "take", lambda problem, exclusive: SimpleNamespace(pool=pool))
    result = session.evaluate(job(T))
    session.close()
    pool.page.close()
    assert result.outcome is outcome
    assert "\n" not in result.reason
    assert asked.count(None) == 2
    if outcome in (Outcome.REJECTED, Outcome.OUT_OF_MEMORY):
        assert "ended twice while it was judged" in result.reason
