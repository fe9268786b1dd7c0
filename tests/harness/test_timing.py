"""What the clock does with real windows on the CPU. What it makes of their times: ``tests/unit/test_estimate.py``.

The reference judges itself on a run's share of the problems: see tests/sampling.py.
"""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kgbench.core.outcomes import Outcome
from kgbench.core.paths import answer_dirs
from kgbench.core.types import Result, Window
from kgbench.harness.clock.case import CaseTiming
from kgbench.harness.machine.timing_lock import STAYS_BUSY
from kgbench.harness.session.session import Deadlines, Job, Session, Settings
from kgbench.harness.workers.handle import HarnessFailed, WorkerFailed
from kgbench.problem.registry import Registry, load_problem
from tests.harness.living import PROBLEM
from tests.harness.sessions import SessionOf
from tests.sampling import sample

pytestmark = [pytest.mark.torch, pytest.mark.timeout(180)]
PROBLEMS = [each for each in Registry().ids() if each in sample()]

HEAD = """
import ctypes, mmap, os, time
import torch

calls = 0

def scale(self, factor):
    return work(self, factor)
"""
HONEST = """
def work(self, factor):
    return torch.mul(self, factor)
"""
# Slow in what is timed alone: who waits in every check as well proves no more.
SLOW = """
def work(self, factor):
    time.sleep(0.005 * (self.numel() > 60_000))
    return torch.mul(self, factor)
"""
# Right in the checks, which call it twice or four times with what is timed.
FORGETFUL = """
def work(self, factor):
    global calls
    calls += self.numel() > 60_000
    if calls > 8:
        return torch.zeros_like(self)
    return torch.mul(self, factor)
"""
FRAGILE = """
def work(self, factor):
    global calls
    calls += self.numel() > 60_000
    if calls > 8:
        os._exit(3)
    return torch.mul(self, factor)
"""
# Raises the marks of the control page itself and does the work afterwards, late.
FORGES_THE_MARK = """
import sys, threading

def page():
    frame = sys._getframe()
    while frame is not None:
        stub = frame.f_locals.get("self")
        if getattr(stub, "page", None) is not None:
            return stub.page
        frame = frame.f_back

def work(self, factor):
    found = page()
    if found is not None and self.numel() > 60_000:
        found.words[found.DONE] = found.words[found.RELEASE]
        found.words[found.SECURED] = found.words[found.RELEASE]
        time.sleep(0.005)
    return torch.mul(self, factor)
"""
# Answers memory that nobody has written; where the stub copies outputs out it does the work, straight into their place.
WORKS_BEHIND_THE_MARK = """
import gc
import sys

worker, buffers = (sys.modules[f"kgbench.harness.{name}"] for name in ("candidate.worker", "wire.buffers"))
COPY, OWED = worker.Stub._place_outputs, {}
STUBS = [each for each in gc.get_objects() if type(each).__name__ == "Stub"]

def place(stub, outputs, offset, capacity):
    if id(outputs) not in OWED:
        return COPY(stub, outputs, offset, capacity)
    self, factor = OWED.pop(id(outputs))
    for _, at in stub._output_places(outputs, offset, capacity):
        for _ in range(30):
            torch.mul(self, factor, out=buffers.tensor_at(stub._buffer(), at))

worker.Stub._place_outputs = place

def work(self, factor):
    # A window's calls were bound before it; outside of windows what is copied comes from other inputs.
    if self.numel() < 60_000 or not STUBS[0].calls:
        return torch.mul(self, factor)
    out = torch.empty_like(self)
    OWED[id(out)] = self, factor
    return out
"""


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One problem of one bench case in two sources: nothing is timed more often than a test needs."""
    folder = tmp_path_factory.mktemp("problems")
    for source in ("mine", "shared"):
        (folder / source).mkdir()
        text = PROBLEM.replace("{m: 16, n: 256}", "{m: 512, n: 1024}")
        (folder / source / "scale.yaml").write_text(text, encoding="utf-8")
    return folder


def judge(session: Session, problems: Path, text: str, problem: str = "mine/scale") -> Result:
    return session.evaluate(Job(load_problem(problems / f"{problem}.yaml"), "test", source=HEAD + text))


def shared(result: Result) -> set[bool]:
    """Whether the library's times were an earlier candidate's."""
    return {case.timing.library_shared for case in result.cases if case.timing is not None}


def ratios(result: Result) -> list[float]:
    return [case.timing.ratio for case in result.cases if case.timing is not None]


def test_an_installed_package_is_timed_where_it_is_correct(timed: Session, problems: Path) -> None:
    """A model's kernel that fails the same calls is not timed."""
    text = HEAD + "\ndef work(self, factor):\n    return torch.mul(self, factor if len(self) > 1 else 0)\n"
    job = Job(load_problem(problems / "mine/scale.yaml"), "fast:1", source=text, adapted="fast 1")
    package, model = timed.evaluate(job), timed.evaluate(replace(job, adapted=""))
    assert package.outcome is model.outcome is Outcome.WRONG_VALUE
    assert [len(ratios(each)) for each in (package, model)] == [1, 0]


def test_an_honest_kernel_is_timed_and_its_outputs_are_judged(timed: Session, problems: Path) -> None:
    result = judge(timed, problems, HONEST)
    assert result.outcome is Outcome.PASSED, result.reason
    timings = [case.timing for case in result.cases if case.timing is not None]
    assert len(timings) == sum(case.phase == "bench" for case in result.cases) == 1
    assert all(0 < timing.outputs_verified <= timing.outputs_timed for timing in timings)
    assert all(timing.low <= timing.ratio <= timing.high for timing in timings)
    assert {window.side for timing in timings for window in timing.windows} == {"library", "candidate"}


@pytest.mark.in_turn("kgbench/harness/clock/library_times.py", turns=3)
def test_the_library_is_timed_once_for_all_candidates_of_a_problem(timed: Session, problems: Path) -> None:
    results = [judge(timed, problems, HONEST, "shared/scale")]
    # One that a busy machine makes look slow leaves no times behind.
    while len(results) < 6 and shared(results[-1]) == {False}:
        results.append(judge(timed, problems, HONEST, "shared/scale"))
    alone, later = ([case.timing for case in result.cases if case.timing] for result in results[-2:])
    results.append(judge(timed, problems, SLOW, "shared/scale"))
    job = Job(load_problem(problems / "shared/scale.yaml"), "baseline", trusted="baseline")
    results.append(timed.evaluate(job))
    # The library against itself is what the clock is measured with, so it is never shared.
    assert list(map(shared, results)) == [*[{False}] * (len(results) - 3), {True}, {True}, {False}]
    slow = [case.timing for case in results[-2].cases if case.timing]
    for one, other in [*zip(alone, later, strict=True), *zip(alone, slow, strict=True)]:
        assert other.library_call_us == one.library_call_us
        assert {window.kind for window in other.windows if window.side == "library"} == {"overhead"}


@pytest.mark.timing
def test_a_slow_kernel_is_scored_slow(timed: Session, problems: Path) -> None:
    result = judge(timed, problems, SLOW)
    assert result.outcome is Outcome.PASSED, result.reason
    assert ratios(result)
    assert max(ratios(result)) < 0.5


@pytest.mark.parametrize(
    ("source", "outcome"),
    [
        (FORGETFUL, Outcome.WRONG_VALUE),
        (FRAGILE, Outcome.CRASHED),
        (FORGES_THE_MARK, Outcome.WRONG_VALUE),
        (WORKS_BEHIND_THE_MARK, Outcome.WRONG_VALUE),
    ],
    ids=["forgetful", "fragile", "forges the mark", "works behind the mark"],
)
def test_what_goes_wrong_in_a_timed_window_is_the_candidates(
    timed: Session, problems: Path, source: str, outcome: Outcome
) -> None:
    result = judge(timed, problems, source)
    assert result.outcome is outcome, result.reason
    assert "timed window" in result.reason or "timing" in result.reason


def test_who_works_behind_its_calls_copies_what_takes_the_place_of_its_inputs(timed: Session, problems: Path) -> None:
    """Outside of windows, too: what is returned must not change with the inputs once a call is over."""
    always = WORKS_BEHIND_THE_MARK.replace("or not STUBS[0].calls", "")
    result = judge(timed, problems, always.replace("OWED.pop(id(outputs))", "OWED[id(outputs)]"))
    assert result.outcome is Outcome.WRONG_VALUE
    assert "what it returned changes with its inputs" in result.reason


@pytest.mark.in_turn("kgbench/harness/referee/speed.py", turns=3)
def test_the_whole_deadline_holds_during_timing(session_of: SessionOf, problems: Path) -> None:
    deadlines = replace(Deadlines.for_device("cpu"), whole_s=4.0)
    with session_of(Settings(device="cpu", jobs=1, hidden=answer_dirs(), deadlines=deadlines)) as session:
        result = judge(session, problems, SLOW.replace("0.005", "0.3"))
    assert result.outcome is Outcome.TIMEOUT, result.reason


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_trusted_reference_passes(session: Session, problem_path: Path, problem: str) -> None:
    result = session.evaluate(Job(load_problem(problem_path / f"{problem}.yaml"), "reference", trusted="reference"))
    assert result.outcome is Outcome.PASSED, result.reason


@pytest.mark.parametrize(("quiet_without_it", "error"), [(True, WorkerFailed), (False, HarnessFailed)])
def test_who_keeps_the_device_busy_is_found_by_ending_the_candidate(
    quiet_without_it: bool, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a device that another process keeps busy for good, nobody is to blame."""
    import torch

    from kgbench.core.details.where import Purpose, Where
    from kgbench.harness.clock.quiet import QuietDevice

    candidate = SimpleNamespace(log_tail="", killed=[])
    candidate.kill = candidate.killed.append
    turns = cast("Any", SimpleNamespace(alone=contextlib.nullcontext))
    device = QuietDevice(torch.device("cpu"), turns, random.Random(0))
    monkeypatch.setattr(device, "is_quiet", lambda deadline_s: bool(candidate.killed) and quiet_without_it)
    with pytest.raises(error, match=STAYS_BUSY) as raised:
        device.end_who_stays_busy(cast("Any", candidate), Where(Purpose.TIMING, "", "1"))
    assert candidate.killed == ["rejected"]
    assert not isinstance(raised.value, WorkerFailed) or raised.value.outcome is Outcome.REJECTED


@pytest.mark.parametrize(
    ("candidate_us", "steps", "found"),
    [
        ([150.0] * 4, 2, None),
        ([1000.0, 1000.0, 120.0, 120.0], 3, None),
        ([1000.0, 900.0, 1000.0, 1000.0], 4, (100.0, 900.0)),
    ],
)
def test_single_calls_end_once_none_stands_out(candidate_us: list[float], steps: int, found: object) -> None:
    timing, times = CaseTiming.__new__(CaseTiming), {"library": [100.0] * 4, "candidate": candidate_us}
    bent: Any = timing
    bent.windows = SimpleNamespace(sides=dict.fromkeys(times), overhead_us=0.0)
    bent.judge, bent.queued = SimpleNamespace(device=SimpleNamespace(type="cpu")), False
    bent._draw = lambda calls: None
    ran: list[str] = []

    def window(name: str, inputs: None, kind: str, queued: bool) -> Window:
        ran.append(name)
        took_us = times[name][ran.count(name) - 1]
        return Window(name, kind, 1, took_us, took_us)

    bent._timed_window = window
    pair = (Window("library", "window", 10, 1000.0, 1000.0), Window("candidate", "window", 10, 1000.0, 1000.0))
    assert timing.singles([pair]) == found
    assert len(ran) == 2 * steps
