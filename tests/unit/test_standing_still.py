"""Whether processes that were stopped stand still: each thread's state, and how often it was given a processor."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import itertools
import mmap
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kgbench.harness.machine import processes
from kgbench.harness.machine.processes import Ran, Task, ran_own_code, tasks_of, used_own_time, woken
from kgbench.harness.machine.shared_page import SharedPage
from kgbench.harness.machine.timing_lock import Disturbed, TimingLock
from tests.harness.living import wait_until

Start = Callable[[Callable[[], object]], int]


@pytest.fixture
def start() -> Iterator[Start]:
    """A fork that does something until it is killed."""
    begun: list[int] = []

    def begin(action: Callable[[], object]) -> int:
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                action()
                os.write(writer, b"1")
                while True:
                    time.sleep(1)
            os._exit(1)
        begun.append(pid)
        os.read(reader, 1)
        return pid

    yield begin
    for pid in begun:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def stopped(pid: int) -> dict[tuple[int, int], Task]:
    os.kill(pid, signal.SIGSTOP)
    processes.await_stopped([pid])
    return tasks_of([pid])


def with_threads() -> None:
    for _ in range(3):
        threading.Thread(target=lambda: [None for _ in itertools.count()], daemon=True).start()


def test_all_threads_of_a_stopped_process_stand_still(start: Start) -> None:
    pid = start(with_threads)
    assert any(not task.is_still for task in tasks_of([pid]).values())
    before = stopped(pid)
    assert len(before) == 4
    assert all(task.is_still for task in before.values())
    time.sleep(0.05)
    assert not woken(before, tasks_of([pid]))


def test_one_that_went_on_in_between_is_found_though_it_is_stopped_again(start: Start) -> None:
    pid = start(with_threads)
    before = stopped(pid)
    os.kill(pid, signal.SIGCONT)
    time.sleep(0.05)
    after = stopped(pid)
    assert all(task.is_still for task in after.values())
    assert woken(before, after)


class Event(ctypes.Structure):
    """A struct sigevent."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("pad", ctypes.c_int * 12),
    )


def woken_by_timers() -> None:
    """Each timer is put off every 8 ms: one of 200 ms is set at the stop however long others had the processor."""
    libc = ctypes.CDLL(None)
    signal.signal(signal.SIGCONT, lambda number, frame: None)
    timers = [ctypes.c_void_p() for _ in range(16)]

    def put_off(timer: ctypes.c_void_p) -> None:
        libc.timer_settime(timer, 0, (ctypes.c_long * 4)(0, 0, 0, 200_000_000), None)

    for timer in timers:
        libc.timer_create(1, ctypes.byref(Event(None, signal.SIGCONT, 0)), ctypes.byref(timer))
        put_off(timer)

    def put_all_off() -> None:
        for timer in itertools.cycle(timers):
            put_off(timer)
            time.sleep(0.0005)

    threading.Thread(target=put_all_off, daemon=True).start()


def test_a_timer_that_wakes_it_is_found(start: Start) -> None:
    pid = start(woken_by_timers)
    before = stopped(pid)
    until = time.monotonic() + 10
    while not woken(before, tasks_of([pid])) and time.monotonic() < until:
        time.sleep(0.01)
    assert woken(before, tasks_of([pid]))


def test_what_ran_in_between_is_counted() -> None:
    before = {(1, 1): Task("R", 5, 1000), (1, 2): Task("S", 1, 500)}
    after = {(1, 1): Task("T", 5, 31_000), (1, 2): Task("T", 1, 500), (1, 3): Task("T", 1, 20_000)}
    assert processes.ran_us(before, after) == 50.0
    assert processes.ran_us({}, {(1, 1): Task("T", 0, 0)}) is None, "who cannot count forgives nothing"
    assert processes.ran_us({**before, (2, 2): Task("R", 1, 5)}, after) is None, "nobody knows what the gone took"


def test_a_tree_that_forks_on_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """What each look finds is new."""
    pids = itertools.count(1 << 30)
    monkeypatch.setattr(processes, "descendants", lambda root: [next(pids)])
    monkeypatch.setattr(processes, "STOP_DEADLINE_S", 0.05)
    found, forked = processes.stop_trees([1])
    assert forked
    assert next(pids) - 1 in found, "what the last look found runs, and is shown to"


def test_a_tree_that_stands_still_was_not_forked_meanwhile(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tree of one process: this one's other children are none of the test's."""
    pid = start(with_threads)
    monkeypatch.setattr(processes, "descendants", lambda root: [pid])
    assert processes.stop_trees([1], [pid]) == ({pid}, False)
    assert processes.stop_trees([1]) == ({pid}, False)


def test_what_was_forked_since_a_tree_was_seen_is_stopped_as_well(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, new = start(with_threads), start(with_threads)
    monkeypatch.setattr(processes, "descendants", lambda root: [seen, new])
    assert processes.stop_trees([1], [seen]) == ({seen, new}, True)
    assert all(task.is_still for task in tasks_of([new]).values())


def test_what_may_change_and_what_may_not() -> None:
    still, key = {(1, 1): Task("T", 5)}, (1, 1)
    assert not woken(still, {key: Task("T", 5)})
    assert woken(still, {key: Task("T", 6)})
    assert woken(still, {key: Task("R", 5), (1, 2): Task("T", 1)}), "a thread is new"
    assert not woken(still, {}), "the dead move no more"
    assert not woken(still, {key: Task("Z", 6)})
    assert not woken({key: Task("D", 5)}, {key: Task("T", 6)}), "it came back from the kernel and was stopped"
    assert woken({key: Task("D", 5, 10)}, {key: Task("T", 6, 2_000_010)}), "it came back and worked before it stopped"
    assert woken({key: Task("R", 5)}, {key: Task("T", 6)}), "it never stood still"


def test_what_the_kernel_did_for_a_waiting_thread_is_no_work_of_its_own() -> None:
    waiting, key = {(1, 1): Task("D", 5, 10, 40)}, (1, 1)
    driver = {key: Task("T", 9, 300_000_010, 41)}
    assert woken(waiting, driver), "the turn is disturbed"
    assert not ran_own_code(waiting, driver), "but nobody is to blame"
    assert not used_own_time(waiting, driver)
    assert used_own_time(waiting, {key: Task("T", 9, 300_000_010, 60)})
    assert not ran_own_code(waiting, {key: Task("T", 9, 300_000_010, 60)}), "the kernel's samples are no proof"
    busy = {key: Task("R", 5, 10, 40)}
    for after in (driver, {key: Task("R", 7, 300_000_010, 41)}):
        assert woken(busy, after), "a driver may be busy without waiting"
        assert not ran_own_code(busy, after)
    assert used_own_time(busy, {key: Task("R", 7, 300_000_010, 60)})
    assert ran_own_code({key: Task("T", 5)}, {key: Task("R", 5)}), "where the kernel does not count"
    (ran,) = ran_own_code({key: Task("T", 5)}, {key: Task("T", 6)})
    assert ran == Ran(key, Task("T", 5), Task("T", 6)), "it was stopped, and has run"
    assert ran_own_code(waiting, {**driver, (1, 2): Task("T", 1)}), "a thread is new"


def test_a_thread_that_is_ending_runs_no_code_of_its_own() -> None:
    """A referee may have its worker killed just before it is stopped itself; the driver then gives memory back."""
    key, stopped_ = (1, 1), {(1, 1): Task("T", 5)}
    for state in "RD":
        ending = {key: Task(state, 6, 400_000_000, 0, is_ending=True)}
        assert woken(stopped_, ending), "the turn is disturbed"
        assert not ran_own_code(stopped_, ending)
    assert ran_own_code(stopped_, {key: Task("R", 6)})
    assert not woken(stopped_, {key: Task("Z", 6, is_ending=True)}), "it is over"


def test_the_kernel_says_which_threads_are_ending(start: Start) -> None:
    pid = start(with_threads)
    assert not any(task.is_ending for task in tasks_of([pid]).values())
    os.kill(pid, signal.SIGKILL)
    deadline, left = time.monotonic() + 30, tasks_of([pid])
    while not all(task.is_ending for task in left.values()) and time.monotonic() < deadline:
        left = tasks_of([pid])
    assert left, "its parent has not asked for its end yet"
    assert all(task.is_ending for task in left.values())


def test_time_outside_the_kernel_is_counted(start: Start) -> None:
    pid = start(with_threads)
    deadline, ticks = time.monotonic() + 30, 0
    while ticks < 5 and time.monotonic() < deadline:
        ticks = sum(task.user_ticks for task in tasks_of([pid]).values())
    assert ticks >= 5


def forks_after(seconds: float) -> None:
    """Begin a child that runs, from another thread, so that the caller goes on."""

    def fork() -> None:
        time.sleep(seconds)
        if os.fork() == 0:
            for _ in itertools.count():
                pass

    warnings.simplefilter("ignore", DeprecationWarning)
    threading.Thread(target=fork, daemon=True).start()


def test_what_is_not_timed_counts_though_anothers_worker_ran(start: Start) -> None:
    page = SharedPage.create()
    mine, others = TimingLock(page, 0), TimingLock(page, 1)
    page.slot(1)[0] = start(lambda: None)  # stands for the other referee

    def supervisor() -> None:
        if os.fork() == 0:
            while True:
                time.sleep(1)
        forks_after(0.2)

    others.add(start(supervisor))
    with mine.alone():
        time.sleep(0.4)
    for child in processes.descendants(page.supervisors(1)[0]):
        os.kill(child, signal.SIGKILL)
    assert others.was_restless() == "in 1 turn there was a new thread"


def test_who_reserves_memory_stops_nobody_and_waits_for_no_turn(start: Start) -> None:
    page = SharedPage.create()
    mine, _ = TimingLock(page, 0), TimingLock(page, 1)
    page.slot(1)[0] = other = start(lambda: None)  # stands for the other referee
    with mine.reserved(5, 10):
        assert states(other) != {"T"}
        assert is_free(page), "another's turn goes on beside it"
    with mine.reserved(5, 10), mine.turn():
        assert states(other) == {"T"}, "a turn is no different beside it"
        assert not is_free(page)


def test_calls_that_fit_beside_each_other_go_at_once(start: Start) -> None:
    page = SharedPage.create()
    mine, others = TimingLock(page, 0), TimingLock(page, 1)

    def reserve(nbytes: int) -> None:
        with others.reserved(nbytes, 10):
            page.words[-1] = nbytes

    with mine.reserved(5, 10):
        start(lambda: reserve(5))
        assert page.words[-1] == 5
        assert others.has_room(5, 10)
        assert not others.has_room(6, 10)
        start(lambda: threading.Thread(target=reserve, args=(6,), daemon=True).start())
        time.sleep(0.2)
        assert page.words[-1] == 5, "6 of 10 do not fit beside 5"
        assert not others.has_room(1, 10), "who waits is first"
    assert wait_until(lambda: page.words[-1] == 6, 10)
    assert others.has_room(20, 10)
    start(lambda: reserve(20))
    assert page.words[-1] == 20, "more than all may reserve goes alone"


def test_what_a_referee_reserved_is_free_again_when_it_has_ended() -> None:
    page = SharedPage.create()
    with TimingLock(page, 0).reserved(5, 10):
        assert page.reserved_bytes() == 5
        page.clear(0)  # the coordinator does so once the process was killed
        assert page.reserved_bytes() == 0


def states(pid: int) -> set[str]:
    return {task.state for task in tasks_of([pid]).values()}


def is_free(page: SharedPage) -> bool:
    """Whether another process could take the timing lock; locks are of processes."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        try:
            fcntl.lockf(page.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
            os.write(writer, b"1")
        except OSError:
            os.write(writer, b"0")
        os._exit(0)
    os.waitpid(pid, 0)
    found = os.read(reader, 1)
    os.close(reader), os.close(writer)
    return found == b"1"


def test_clock_ticks_alone_are_blamed_on_a_worker_in_the_third_turn(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = SharedPage.create()
    mine, others = TimingLock(page, 0), TimingLock(page, 1)
    page.slot(1)[0] = start(lambda: None)  # stands for the other referee
    others.add(start(with_a_child))
    monkeypatch.setattr(processes, "woken", lambda before, after: True)
    monkeypatch.setattr(processes, "used_own_time", lambda before, after: True)
    for turns, blamed in ((2, False), (3, True)):
        for _ in range(turns):
            with pytest.raises(Disturbed), mine.turn():
                pass
        assert bool(others.was_restless()) == blamed
        assert not others.was_restless(), "asking forgets it"
    for child in processes.descendants(page.supervisors(1)[0]):
        os.kill(child, signal.SIGKILL)


def test_a_thread_that_is_scheduled_once_more_to_leave_its_processor_is_no_proof() -> None:
    key = (1, 1)
    still = {key: Task("T", 5, 1_000_000)}
    for after, is_brief in (
        (Task("T", 6, 1_020_000), True),
        (Task("T", 6, 1_200_000), False),
        (Task("R", 6, 1_020_000), False),
    ):
        assert woken(still, {key: after}), "the turn is disturbed"
        (ran,) = ran_own_code(still, {key: after})
        assert ran.is_brief is is_brief
    (new,) = ran_own_code(still, {**still, (1, 2): Task("T", 1, 10)})
    assert not new.is_brief
    moment, long = ran_own_code(
        {**still, (1, 2): Task("T", 5, 10)}, {key: Task("T", 6, 1_020_000), (1, 2): Task("T", 6, 900_010)}
    )
    assert (moment.is_brief, long.is_brief) == (True, False), "who ran for long is not hidden by who ran before"


def with_a_child() -> None:
    if os.fork() == 0:
        while True:
            time.sleep(1)


@pytest.mark.parametrize("earlier", [False, True], ids=["no worker yet", "a worker"])
def test_a_supervisors_first_worker_may_be_forked_in_anothers_turn(start: Start, earlier: bool) -> None:
    page = SharedPage.create()
    mine, others = TimingLock(page, 0), TimingLock(page, 1)
    page.slot(1)[0] = start(lambda: None)  # stands for the other referee

    def supervisor() -> None:
        if earlier and os.fork() == 0:
            while True:
                time.sleep(1)
        forks_after(0.3)

    others.add(start(supervisor))
    with pytest.raises(Disturbed) if earlier else contextlib.nullcontext(), mine.turn():
        time.sleep(0.6)
    (listed,) = page.supervisors(1)
    children = processes.descendants(listed)
    for child in children:
        os.kill(child, signal.SIGKILL)
    assert len(children) == 1 + earlier
    assert bool(others.was_restless()) == earlier


def test_a_file_of_the_kernels_is_read_to_its_end(start: Start) -> None:
    """It comes a page at a time, as a long list of children does."""
    path = Path(f"/proc/{start(lambda: None)}/maps")
    assert len(path.read_bytes()) > 2 * mmap.PAGESIZE
    assert processes._read(str(path)) == path.read_bytes()


def with_page_tables() -> None:
    """A gigabyte of nothing, of which a byte in every page table is read."""
    nothing = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ)
    nothing.madvise(mmap.MADV_NOHUGEPAGE)
    HELD.append(nothing)
    for at in range(0, 1 << 30, 2 << 20):
        nothing[at]


HELD: list[mmap.mmap] = []


def with_pipes() -> None:
    for _ in range(200):
        os.pipe()


def test_memory_that_no_resident_size_counts(start: Start) -> None:
    plain, tables, pipes = start(lambda: None), start(with_page_tables), start(with_pipes)
    own, _ = processes.memory_bytes([plain])
    assert processes.memory_bytes([tables])[0] >= own + (2 << 20) - (1 << 20), "512 tables of 4 KiB"
    assert processes.unshared_bytes([tables]) >= 2 << 20
    most = (400 - processes.USUAL_DESCRIPTORS) * processes.QUEUED_BYTES
    assert processes.queued_bytes(plain) == 0
    assert processes.queued_bytes(pipes) >= most > 0
    assert processes.memory_bytes([pipes])[0] >= most
