"""Sessions of the harness tests: real processes on the CPU, all forked by one server per worker of pytest-xdist."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kgbench.core import user_modules
from kgbench.core.paths import answer_dirs, problems_dir
from kgbench.harness.session.server import ForkServer
from kgbench.harness.session.session import Deadlines, Session, Settings
from tests.harness.sessions import SessionOf, shared

SHORT = Deadlines(import_s=3.0, compile_s=1.0, case_s=9.0, window_s=5.0, whole_s=60.0)
"""Long enough for a tiny kernel on two busy cores, short enough to wait for one that hangs."""
SHORTEST = replace(SHORT, import_s=1.5, case_s=2.0)
"""For one that hangs by all means."""


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Starts with the first session that needs it: an import of torch and Triton takes seconds."""
    server = ForkServer("cpu")
    yield server
    server.close()


@pytest.fixture(scope="session")
def session_of(fork_server: ForkServer) -> SessionOf:
    """A session with settings of its own on the shared fork server."""

    def made(settings: Settings) -> Session:
        session = Session(settings, server=fork_server)
        assert session.server is fork_server, "its surroundings are others: start a server for it explicitly"
        return session

    return made


@pytest.fixture
def commands_share_it(fork_server: ForkServer) -> Iterator[None]:
    """Whatever opens a session in this process has it on the shared fork server, where that fits."""
    with shared(fork_server):
        yield


@pytest.fixture(scope="session")
def session(session_of: SessionOf, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Judges without timing, with the CPU's own deadlines."""
    log_dir = tmp_path_factory.mktemp("session-logs")
    settings = Settings(device="cpu", seed="tests", timing=False, log_dir=log_dir, hidden=answer_dirs())
    with session_of(settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def impatient(session_of: SessionOf, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Judges without timing and gives up soon."""
    with session_of(_bounded(SHORT, tmp_path_factory.mktemp("impatient-logs"))) as opened:
        yield opened


@pytest.fixture(scope="session")
def most_impatient(session_of: SessionOf, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Judges what hangs."""
    with session_of(_bounded(SHORTEST, tmp_path_factory.mktemp("most-impatient-logs"))) as opened:
        yield opened


def _bounded(deadlines: Deadlines, log_dir: Path) -> Settings:
    return Settings(
        device="cpu",
        seed="tests",
        timing=False,
        log_dir=log_dir,
        hidden=answer_dirs(),
        deadlines=deadlines,
        limits={"memory_bytes": 1 << 30, "output_bytes": 16 << 20, "processes": 32},
    )


@pytest.fixture(scope="session")
def timed(session_of: SessionOf) -> Iterator[Session]:
    """Judges and times one candidate after the other, with the CPU's own deadlines."""
    with session_of(Settings(device="cpu", jobs=1, seed="timing tests", hidden=answer_dirs())) as opened:
        yield opened


@pytest.fixture(scope="session")
def strict(session_of: SessionOf, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Judges without timing under the strict policy."""
    log_dir, hidden = tmp_path_factory.mktemp("strict-logs"), answer_dirs()
    settings = Settings(device="cpu", seed="tests", timing=False, log_dir=log_dir, hidden=hidden, policy="strict")
    with session_of(settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def problem_path() -> Path:
    return problems_dir()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Forget the folders of problems that a command named which another test called in this process."""
    os.environ.pop(user_modules.VARIABLE, None)
