"""Sessions that share a fork server: each has its own processes, and leaves none behind."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from kgbench.core import user_modules
from kgbench.core.outcomes import Outcome
from kgbench.core.paths import problems_dir
from kgbench.harness.machine import processes
from kgbench.harness.session.errors import SessionClosed
from kgbench.harness.session.server import ForkServer
from kgbench.harness.session.session import Job, Session, Settings
from kgbench.problem.registry import load_problem
from tests.harness.living import wait_until

# One worker starts the server of this module; the last test closes it.
pytestmark = [pytest.mark.torch, pytest.mark.timeout(180), pytest.mark.xdist_group("fork server")]

T = "def t(self):\n    return self.t()\n"
SLEEPS = f"import time\ntime.sleep(600)\n{T}"
QUICK = Settings(device="cpu", jobs=2, timing=False)
WAIT_S = 60.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkServer]:
    """Not the one that all tests share: its processes are counted, and it is killed."""
    folder = tmp_path_factory.mktemp("begun-here")
    (folder / "numpy.py").write_text("raise SystemExit('a file of the user was imported')\n")
    with contextlib.chdir(folder):
        started = ForkServer("cpu")
        started.start()
    with started:
        yield started


def job(source: str = T, sample: int = 0) -> Job:
    return Job(load_problem(problems_dir() / "aten/t.yaml"), "test", sample, source)


def forked(server: ForkServer) -> set[int]:
    assert server.pid is not None
    return set(processes.descendants(server.pid))


def of_workers(server: ForkServer) -> set[Path]:
    """Folders and control groups of all workers on this machine, also of those whose session was killed."""
    below = [Path(tempfile.gettempdir()), *map(Path, filter(None, [server.plan.cgroup]))]
    return {path for folder in below for path in folder.glob("kgbench-worker-*")}


def of_supervisors(paths: set[Path], pids: set[int]) -> set[Path]:
    """Those of workers whose supervisor is among these."""
    return {path for path in paths if pids.intersection(int(word) for word in path.name.split("-") if word.isdigit())}


@contextlib.contextmanager
def asleep(session: Session) -> Iterator[list[BaseException]]:
    """A candidate that does not end is being judged; what came of it is in the list afterwards."""
    begun, ended = threading.Event(), list[BaseException]()

    def judge() -> None:
        try:
            session.evaluate(job(SLEEPS), lambda phase, _: begun.set())
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=judge)
    thread.start()
    assert begun.wait(WAIT_S)
    yield ended
    thread.join(WAIT_S)
    assert not thread.is_alive()


@pytest.mark.in_turn("kgbench/harness/process/", turns=3)
def test_a_session_that_ends_leaves_nothing_and_the_other_goes_on(server: ForkServer, tmp_path: Path) -> None:
    pid = server.pid
    with Session(QUICK, server=server) as lasting:
        assert lasting.evaluate(job()).outcome is Outcome.PASSED
        before, there = forked(server), of_workers(server)
        assert before
        settings = Settings(device="cpu", jobs=2, timing=False, log_dir=tmp_path / "logs")
        with Session(settings, server=server) as session, asleep(session) as ended:
            assert lasting.evaluate(job(sample=1)).outcome is Outcome.PASSED

            def new() -> set[Path]:
                return of_supervisors(of_workers(server) - there, forked(server) - before)

            assert wait_until(new, WAIT_S)
            own = new()
            session.close()
            assert forked(server) <= before
            assert not any(path.exists() for path in own)
        assert [type(error) for error in ended] == [SessionClosed]
        assert (tmp_path / "logs" / "referee.log").is_file()
        assert lasting.evaluate(job(sample=2)).outcome is Outcome.PASSED
    assert forked(server) == set()
    assert server.pid == pid


def test_each_session_has_its_own_seed_and_cache(server: ForkServer) -> None:
    with Session(QUICK, server=server) as one, Session(QUICK, server=server) as other:
        assert one.server is other.server is server
        assert one.seed != other.seed
        assert one._referees.token != other._referees.token
        folders = [Path(session._referees._cache.name) for session in (one, other)]
        assert len(set(folders)) == 2
    assert not any(folder.exists() for folder in folders)


@pytest.mark.in_turn("kgbench/harness/process/", turns=3)
def test_sessions_outlive_a_killed_server(server: ForkServer) -> None:
    with Session(QUICK, server=server) as one, Session(QUICK, server=server) as other, ThreadPoolExecutor(2) as pool:
        pid = server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        results = pool.map(lambda session: session.evaluate(job()), (one, other))
        assert {result.outcome for result in results} == {Outcome.PASSED}
        assert server.pid not in (None, pid)
    assert forked(server) == set()


def search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))


def cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {4711})


def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))


@pytest.mark.parametrize("differ", [search_path, cores, interpreter])
def test_a_server_fits_no_session_with_other_surroundings(
    differ: Callable[[Path, pytest.MonkeyPatch], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ForkServer("cpu")
    assert server.fits("cpu")
    assert not server.fits("cuda")
    with contextlib.closing(Session(QUICK, server=server)) as session:
        assert session.server is server
    differ(tmp_path, monkeypatch)
    assert not server.fits("cpu")
    with contextlib.closing(Session(QUICK, server=server)) as session:
        assert session.server is not server


def test_it_serves_from_any_folder_and_imports_nothing_that_lies_there(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was started where a file is called like a module that it imports, too."""
    monkeypatch.chdir(tmp_path)
    with Session(QUICK, server=server) as session:
        assert session.server is server
        assert session.evaluate(job()).outcome is Outcome.PASSED


OWN: Final = """\
summary: the same again
kind: compute
category: elementwise
entry: "same(self: Tensor) -> Tensor"
dtypes: {required: [float32]}
arguments:
  self: {access: read, shape: "(n,)", draw: "normal()"}
cases:
  check: [{n: 3}]
  bench: {cpu: [{n: 64}], gpu24: [{n: 64}]}
baseline: {cuda: "same_library:same", cpu: "same_library:same"}
reference: "same_library:same"
tolerance: {rule: rounding}
doc: out = self * FACTOR
"""
LOOKS: Final = """\
import os

def same(self):
    assert not [name for name in os.environ if "KGBENCH" in name]
    import same_library
"""


def test_each_session_imports_from_its_own_folders_of_problems(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two modules of the same name, and two problems of the same name."""
    sessions = []
    with contextlib.ExitStack() as stack:
        for factor in (2, 3):
            folder = tmp_path / str(factor)
            (folder / "mine").mkdir(parents=True)
            (folder / "mine" / "same.yaml").write_text(OWN)
            (folder / "same_library.py").write_text(f"def same(self):\n    return self * {factor}\n")
            monkeypatch.setenv(user_modules.VARIABLE, user_modules.as_text([folder]))
            sessions.append(stack.enter_context(Session(QUICK, server=server)))
        for factor, session in zip((2, 3), sessions, strict=True):
            assert session.server is server
            problem = load_problem(tmp_path / str(factor) / "mine" / "same.yaml")
            own = Job(problem, "test", 0, "def same(self):\n    return self * 3\n")
            got = session.evaluate(own)
            assert got.outcome is (Outcome.PASSED if factor == 3 else Outcome.WRONG_VALUE), got.reason
            assert session.evaluate(replace(own, source=None, trusted="baseline")).outcome is Outcome.PASSED
            hidden = session.evaluate(replace(own, source=LOOKS))
            assert "No module named 'same_library'" in hidden.reason, hidden.reason


@pytest.mark.in_turn("kgbench/harness/process/", turns=3)
def test_a_session_with_other_surroundings_starts_and_ends_a_server_of_its_own(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.start()
    before = set(processes.descendants(os.getpid()))
    search_path(tmp_path, monkeypatch)
    with Session(QUICK, server=server) as session:
        assert session.server is not server
        assert session.evaluate(job()).outcome is Outcome.PASSED
        assert session.server.pid is not None
        own = session.server.pid
    assert not Path(f"/proc/{own}").exists()
    assert wait_until(lambda: set(processes.descendants(os.getpid())) <= before, WAIT_S)
    assert server.pid is not None


def test_a_server_that_was_closed_serves_nobody(server: ForkServer) -> None:
    with Session(QUICK, server=server) as session:
        server.close()
        assert server.pid is None
        with pytest.raises(SessionClosed, match="the fork server was closed"):
            session.evaluate(job())
    with pytest.raises(SessionClosed, match="the fork server was closed"), Session(QUICK, server=server):
        pass
