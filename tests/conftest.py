"""What every test shares: the groups by folder, and the one place where a test is skipped for what a machine lacks."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import signal
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgbench.core.paths import problems_dir
from kgbench.harness.machine.devices import nvidia_gpus
from kgbench.harness.machine.environment import SOUND_PRODUCTS
from kgbench.problem import validate
from kgbench.problem.cases import Sizes
from kgbench.problem.model import Overload, Problem
from kgbench.problem.registry import load_problem
from kgbench.prompts import words
from tests.sampling import has_turn, sample

# Before anything imports torch or numpy: two cores serve several processes at once.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.update(SOUND_PRODUCTS)
# What a shell starts in the background ignores an interrupt, and so would all that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

GPU_REASON = "needs an NVIDIA GPU: run on a machine with one"
TORCH_REASON = "needs torch: pip install torch (its CPU build is enough), or make test"
TURN_REASON = "another share runs it: KGBENCH_TEST_ALL=1 runs all, and so does the name of its file"
BROWSER_REASON = "needs Chromium and playwright: apt install chromium, and make test installs playwright"

FOLDER_MARKERS = {"gpu": ("gpu", "torch"), "browser": ("browser",)}
"""Markers that every test of a folder below tests/ has."""


def chromium() -> str | None:
    """The browser that the system has; none is downloaded."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@functools.cache
def _loaded(path: Path) -> Problem:
    return load_problem(path)


@pytest.fixture(scope="session", autouse=True)
def no_cache_of_this_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What kgbench keeps of a device, such as durations, neither comes from an earlier test run nor stays after it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session", autouse=True)
def shipped_problems_are_read_once() -> Iterator[None]:
    """Commands that tests call in their own process read the same files hundreds of times, and bound the same sizes.

    A file that changes meanwhile is read anew.
    """
    read, bounds = validate.read_problem, words.sizes_of
    read_before: dict[tuple[Path, int, int], Problem] = {}
    bounded_before: dict[int, tuple[Overload, Sizes]] = {}

    def read_once(path: Path) -> Problem:
        if path.parent.parent != problems_dir() or not path.is_file():
            return read(path)
        key = path, (found := path.stat()).st_mtime_ns, found.st_size
        if key not in read_before:
            read_before[key] = read(path)
        return read_before[key]

    def bounded_once(overload: Overload) -> Sizes:
        if id(overload) not in bounded_before:
            bounded_before[id(overload)] = overload, bounds(overload)  # kept, so that no other one has its id
        return bounded_before[id(overload)][1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validate, "read_problem", read_once)
        patch.setattr(words, "sizes_of", bounded_once)
        yield


@pytest.fixture(scope="session")
def shipped() -> Callable[[Path], Problem]:
    """Problems that nobody changes: each file is read once per worker."""
    return _loaded


def pytest_configure(config: pytest.Config) -> None:
    """Refuse a pytest that drops all groups in silence: pytest-xdist 3.8 writes them behind a test's ``_nodeid``."""
    if config.getoption("dist", "no") == "loadgroup" and not hasattr(pytest.Item, "_nodeid"):
        raise pytest.UsageError(
            f"pytest {pytest.__version__} drops the groups of pytest-xdist: pip install 'pytest<9.2'"
        )


def pytest_sessionstart(session: pytest.Session) -> None:
    """Of each test a worker sends pytest-rerunfailures two messages, and TCP keeps the second back for 40 ms."""
    connection = getattr(getattr(session.config, "failures_db", None), "sock", None)
    if isinstance(connection, socket.socket):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def pytest_report_header() -> str:
    return str(sample())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many tests were skipped for which reason; one line a reason, since a share skips hundreds."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    for reason, count in reasons.most_common():
        terminalreporter.line(f"skipped {count}: {reason}")


@pytest.hookimpl(tryfirst=True)  # pytest-xdist reads the groups in a hook of the same name
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by folder, then skip what this machine cannot run and what another run does."""
    drivers = map(importlib.util.find_spec, ("playwright", "vl_convert"))
    no_browser = chromium() is None or not all(drivers)
    lacks = {"gpu": not nvidia_gpus(), "torch": importlib.util.find_spec("torch") is None, "browser": no_browser}
    reasons = {"gpu": GPU_REASON, "torch": TORCH_REASON, "browser": BROWSER_REASON}
    here = Path(__file__).parent
    for item in items:
        if not _its_turn(item):
            item.add_marker(pytest.mark.skip(reason=TURN_REASON))
        for marker in FOLDER_MARKERS.get(item.path.relative_to(here).parts[0], ()):
            item.add_marker(marker)
        if item.get_closest_marker("gpu"):
            # One GPU, one test at a time, also under pytest-xdist.
            item.add_marker(pytest.mark.xdist_group("gpu"))
        if item.get_closest_marker("browser"):
            # The browser starts once for a file, and the pages are written once.
            item.add_marker(pytest.mark.xdist_group("browser"))
        for marker, reason in reasons.items():
            if lacks[marker] and item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))
                break


def _its_turn(item: pytest.Item) -> bool:
    """Whether this run has a slow test."""
    marker = item.get_closest_marker("in_turn")
    named = (str(argument).partition("::")[0] for argument in item.config.args)
    if marker is None or any(each.endswith(item.path.name) for each in named):
        return True
    options = {"together": False, **marker.kwargs}
    file = item.nodeid.partition("::")[0]
    name = file if options.pop("together") else item.nodeid
    return has_turn(name, (*marker.args, file), **options)
