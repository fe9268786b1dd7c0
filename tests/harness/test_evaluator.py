"""Judging from Python: warm, from many threads, interrupted, closed; and nothing left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from kgbench import Evaluator
from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import examples_dir
from kgbench.harness.machine import processes
from kgbench.harness.session.errors import SessionClosed
from kgbench.harness.session.server import ForkServer

pytestmark = [pytest.mark.torch, pytest.mark.timeout(120)]

RIGHT = (examples_dir() / "aten/t.py").read_text()
WRONG = "def t(self):\n    return self.t().clone()\n"
SLEEPS = "import time\ndef t(self):\n    time.sleep(60)\n"


@pytest.fixture(scope="module")
def evaluator(fork_server: ForkServer) -> Iterator[Evaluator]:
    with Evaluator("cpu", jobs=2, timing=False, server=fork_server) as opened:
        yield opened


def test_results_say_what_a_trainer_needs(evaluator: Evaluator) -> None:
    result = evaluator.check("aten::t", RIGHT)
    assert (result.outcome, result.problem) == (Outcome.PASSED, "aten/t")
    assert (result.speedup, result.reward(0.0), result.reward()) == (None, 1.0, 0.0)
    wrong = evaluator.check("aten/t", WRONG)
    assert (wrong.outcome, wrong.reward(0.0)) == (Outcome.REJECTED, 0.0) or wrong.outcome is Outcome.WRONG_VALUE


def test_an_unknown_problem_is_named(evaluator: Evaluator) -> None:
    with pytest.raises(UsageError, match="aten/tt"):
        evaluator.check("aten/tt", RIGHT)


@pytest.mark.in_turn("kgbench/evaluation/")
def test_many_threads_share_it_and_nothing_leaks(evaluator: Evaluator) -> None:
    evaluator.check("aten/t", RIGHT)
    own = psutil.Process()

    with ThreadPoolExecutor(20) as pool:
        assert {r.outcome for r in pool.map(lambda _: evaluator.check("aten/t", RIGHT), range(8))} == {Outcome.PASSED}
        time.sleep(1.0)
        others, descriptors = len(processes.descendants(os.getpid())), own.num_fds()
        below = _descriptors_below()
        texts = [RIGHT if i % 2 else WRONG for i in range(40)]
        got = [result.outcome for result in pool.map(lambda text: evaluator.check("aten/t", text), texts)]
    assert [outcome is Outcome.PASSED for outcome in got] == [bool(i % 2) for i in range(40)]
    # The second referee may have got its library worker, with its supervisor, only now.
    deadline = time.monotonic() + 10.0
    while len(left := processes.descendants(os.getpid())) > others + 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert len(left) <= others + 2
    assert own.num_fds() <= descriptors
    # The second library worker and its supervisor have some, too; forty candidates must not have left one each.
    assert _descriptors_below() < below + 35


def _descriptors_below() -> int:
    """Of the fork server, the referees and what else lasts longer than a candidate."""
    found = 0
    for pid in processes.descendants(os.getpid()):
        with contextlib.suppress(OSError):  # ended meanwhile, or one that nobody but root may look into
            found += len(os.listdir(f"/proc/{pid}/fd"))
    return found


def test_an_interrupt_ends_one_check_and_the_next_one_works(evaluator: Evaluator) -> None:
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        with pytest.raises(KeyboardInterrupt):
            evaluator.check("aten/t", SLEEPS)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert evaluator.check("aten/t", RIGHT).outcome is Outcome.PASSED


def test_close_wakes_those_who_wait_and_leaves_no_process(fork_server: ForkServer) -> None:
    fork_server.start()
    before = set(processes.descendants(os.getpid()))
    evaluator = Evaluator("cpu", jobs=1, timing=False, server=fork_server)
    raised: list[BaseException] = []

    def check() -> None:
        try:
            evaluator.check("aten/t", SLEEPS)
        except BaseException as error:
            raised.append(error)

    threads = [threading.Thread(target=check) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(1.0)
    evaluator.close()
    for thread in threads:
        thread.join(10.0)
    assert [type(error) for error in raised] == [SessionClosed] * 3
    assert set(processes.descendants(os.getpid())) - before == set()
    with pytest.raises(SessionClosed):
        evaluator.check("aten/t", RIGHT)


def test_importing_it_loads_no_torch(tmp_path: Path) -> None:
    program = "import sys; from kgbench import Evaluator; assert 'torch' not in sys.modules, 'torch'"
    assert os.spawnv(os.P_WAIT, os.sys.executable, [os.sys.executable, "-c", program]) == 0  # type: ignore[attr-defined]


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt
