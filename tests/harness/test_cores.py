"""Both sides' workers on one core of the machine, with real processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from kgbench.harness.machine import cores
from kgbench.harness.machine.cores import for_compiling, for_turns, shared_core

SLEEPER = "import threading, time; threading.Thread(target=time.sleep, args=(60,)).start(); time.sleep(60)"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {SLEEPER!r}])"


@pytest.fixture
def supervisors() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Two processes with a child of two threads each."""
    started = [subprocess.Popen([sys.executable, "-c", PARENT]) for _ in range(2)]
    until = time.monotonic() + 20
    while any(len(threads_below(each.pid)) < 2 for each in started):
        assert time.monotonic() < until
        time.sleep(0.02)
    yield started
    for each in started:
        for child in psutil.Process(each.pid).children(recursive=True):
            child.kill()
        each.kill()
        each.wait()


def threads_below(supervisor: int) -> list[int]:
    children = psutil.Process(supervisor).children(recursive=True)
    return [thread.id for child in children for thread in child.threads()]


def affinities(supervisors: list[subprocess.Popen[bytes]]) -> list[set[int]]:
    return [os.sched_getaffinity(thread) for each in supervisors for thread in threads_below(each.pid)]


def test_inside_the_block_all_threads_have_one_core_that_the_referee_leaves(
    supervisors: list[subprocess.Popen[bytes]],
) -> None:
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("needs two processor cores")
    with shared_core((each.pid for each in supervisors), before):
        inside, own = affinities(supervisors), os.sched_getaffinity(0)
    (core,) = inside[0]
    assert inside == [{core}] * 4
    assert own == before - {core}
    assert os.sched_getaffinity(0) == before
    assert affinities(supervisors) == [before] * 4


def test_all_stay_where_they_are_if_one_of_them_cannot_be_placed(
    supervisors: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, place = os.sched_getaffinity(0), os.sched_setaffinity
    foreign = threads_below(supervisors[1].pid)[0]

    def refused(thread: int, wanted: set[int]) -> None:
        if thread == foreign:
            raise PermissionError
        place(thread, wanted)

    monkeypatch.setattr(os, "sched_setaffinity", refused)
    with shared_core((each.pid for each in supervisors), before):
        inside, own = affinities(supervisors), os.sched_getaffinity(0)
    assert inside == [before] * 4
    assert own == before


def test_the_workers_core_is_one_of_the_devices_where_a_worker_ran_last(
    supervisors: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[set[int]] = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda thread, wanted: placed.append({*wanted}))
    monkeypatch.setattr(cores, "_last_cores", lambda pids: [12, 3, 5])
    with shared_core((each.pid for each in supervisors), (2, 3, 4, 5)):
        assert placed == [{3}] * 4 + [{2, 4, 5}]
    with shared_core((each.pid for each in supervisors), ()):
        assert placed[-1] == os.sched_getaffinity(0), "nobody was placed again"


def test_devices_of_a_session_share_no_core_and_none_with_what_compiles() -> None:
    session = range(32)
    assert for_turns(session, 0, 2) == tuple(range(8))
    assert for_turns(session, 1, 2) == tuple(range(8, 16))
    assert for_compiling(session) == set(range(16, 32))
    assert for_turns(range(7), 0, 1) == (), "too few to set one apart"


def test_a_place_for_samples_is_also_where_a_worker_alone_may_run(supervisors: list[subprocess.Popen[bytes]]) -> None:
    threads = [thread for each in supervisors for thread in threads_below(each.pid)]
    assert cores.usable([*threads, 2**22 - 1]) == os.sched_getaffinity(0)
