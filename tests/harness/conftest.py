"""Sessions shared by the harness tests: real processes on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgbench.core.paths import answer_dirs, problems_dir
from kgbench.harness.session.session import Deadlines, Session, Settings

ONE_WORKER = frozenset({"impatient", "strict", "ablated", "evaluator", "timed"})
"""Sessions that few tests share: these run in one worker of pytest-xdist, as each worker would open its own."""

SHORT = Deadlines(import_s=3.0, compile_s=1.0, case_s=3.0, window_s=5.0, whole_s=60.0)
"""Long enough for a tiny kernel on two busy cores, short enough to wait for one that hangs."""


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Judges without timing, with the CPU's own deadlines."""
    log_dir = tmp_path_factory.mktemp("session-logs")
    with Session(Settings(device="cpu", seed="tests", timing=False, log_dir=log_dir, hidden=answer_dirs())) as opened:
        yield opened


@pytest.fixture(scope="session")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Judges without timing and gives up soon."""
    log_dir = tmp_path_factory.mktemp("impatient-logs")
    settings = Settings(
        device="cpu",
        seed="tests",
        timing=False,
        log_dir=log_dir,
        hidden=answer_dirs(),
        deadlines=SHORT,
        limits={"memory_bytes": 1 << 30, "output_bytes": 16 << 20, "processes": 64},
    )
    with Session(settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def timed() -> Iterator[Session]:
    """Judges and times one candidate after the other, with the CPU's own deadlines."""
    with Session(Settings(device="cpu", jobs=1, seed="timing tests", hidden=answer_dirs())) as opened:
        yield opened


@pytest.fixture(scope="session")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Judges without timing under the strict policy, and leaves out what a job says."""
    log_dir, hidden = tmp_path_factory.mktemp("strict-logs"), answer_dirs()
    settings = Settings(
        device="cpu", seed="tests", timing=False, log_dir=log_dir, hidden=hidden, policy="strict", ablation=True
    )
    with Session(settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def problem_path() -> Path:
    return problems_dir()


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests that share a session of few in one worker."""
    for item in (each for each in items if each.path.is_relative_to(Path(__file__).parent)):
        for fixture in ONE_WORKER.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group(fixture))
