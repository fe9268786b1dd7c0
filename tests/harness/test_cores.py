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
from kgbench.harness.machine.cores import core_for_workers, for_compiling, shared_core

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
    supervisors: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("needs two processor cores")
    monkeypatch.setattr(cores, "LEAST_CORES", 2)
    monkeypatch.setattr(cores, "for_compiling", lambda cores: set())
    with shared_core(each.pid for each in supervisors):
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
    monkeypatch.setattr(cores, "LEAST_CORES", 1)
    foreign = threads_below(supervisors[1].pid)[0]

    def refused(thread: int, wanted: set[int]) -> None:
        if thread == foreign:
            raise PermissionError
        place(thread, wanted)

    monkeypatch.setattr(os, "sched_setaffinity", refused)
    with shared_core(each.pid for each in supervisors):
        inside, own = affinities(supervisors), os.sched_getaffinity(0)
    assert inside == [before] * 4
    assert own == before


def test_the_workers_core_is_none_for_compiling_and_where_one_of_them_ran() -> None:
    session = range(16)
    assert for_compiling(session) == set(range(8, 16))
    assert core_for_workers(session, [12, 3, 5]) == 3
    assert core_for_workers(session, [12]) == 7
    assert core_for_workers(range(7), [3]) is None, "too few to set one apart"


def test_a_place_for_samples_is_also_where_a_worker_alone_may_run(supervisors: list[subprocess.Popen[bytes]]) -> None:
    threads = [thread for each in supervisors for thread in threads_below(each.pid)]
    assert cores.usable([*threads, 2**22 - 1]) == os.sched_getaffinity(0)
