"""The timing lock of a device: one referee at a time is timed, and the workers of all others are stopped meanwhile.

All referees of a device share one page of memory. It holds the process ids of each one's workers and how long each was
stopped; a lock on the page's file is the timing lock. A referee's *turn* is a time for which it holds the lock and has
every other referee of the device stopped with its workers; what they lose counts against no deadline of theirs
(``now``). The lock ends with the process that holds it; the coordinator then continues what that process had stopped.
What takes a good part of the device's memory is reserved in the page first, which stops nobody.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from kgbench.core.text import number_of
from kgbench.harness.machine import processes, trace

MAX_REFEREES: Final = 64
"""Referees of one device at most."""
_SUPERVISORS: Final = 6
"""Workers of one referee at most."""
_WORDS: Final = 16
"""64-bit words per referee: its pid, whether it is starting a worker, nanoseconds stopped, since when it is stopped now
(0 while it runs), then its supervisors."""
_PID, _STARTING, _STOPPED_NS, _SINCE_NS, _FIRST_SUPERVISOR = 0, 1, 2, 3, 4
_HELD, _TICKED, _RESERVED, _WOKE, _GREW = 10, 11, 12, 13, 14
"""Words per referee behind its supervisors: which of them, a bit each, it keeps stopped itself; in how many turns one
of its workers seemed to run, by clock ticks or for a moment; bytes of the device's memory that it reserved; in how many
turns a thread of its workers ran that had been stopped, and in how many there was a new one."""
_MOST_HINTS: Final = 2
"""Turns in which a worker may seem to have run, by clock ticks or for a moment. Those turns count for nobody; a third
one is the worker's fault."""
_HEADER: Final = 8
"""64-bit words before the first referee's: sums and least times of the whole device."""
_TURNS_NS, _QUIET_NS, _STOPPING_NS, _EMPTY_NS = 0, 1, 2, 3
_TIMING_BYTE, _ROOM_BYTE = 0, 1
"""Bytes of the page's file whose locks are the timing lock, and the place at the head of those who wait for memory."""
_ROOM_POLL_S: Final = 0.02
"""Seconds between two looks at what others have reserved."""
_STARTING_DEADLINE_S: Final = 10.0
"""Seconds to wait for a referee that starts a worker before it is stopped all the same."""
STAYS_BUSY: Final = "the device stays busy while all candidates are stopped"
"""Reason of a result whose device was busy although all candidates were stopped. Next to others it may be another
candidate's kernel that is still running."""
DISTURBED: Final = "another candidate went on running while it was stopped"
"""Reason of a result that could not be timed because another candidate ran on."""


class Disturbed(Exception):
    """Another candidate's worker ran during a turn: what was timed in that turn does not count."""

    def __init__(self) -> None:
        super().__init__(DISTURBED)


_Threads = Mapping[tuple[int, int], processes.Task]
_Tasks = dict[int, dict[tuple[int, int], processes.Task]]
"""Threads of workers, by the process id of their supervisor."""


class SharedPage:
    """The shared page of a device. Every process that uses it opens it by descriptor."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._map = mmap.mmap(fd, _page_bytes())
        self.words = memoryview(self._map).cast("q")

    @classmethod
    def create(cls) -> SharedPage:
        fd = os.memfd_create("kgbench-turns", os.MFD_CLOEXEC)
        os.ftruncate(fd, _page_bytes())
        return cls(fd)

    def close(self) -> None:
        self.words.release()
        self._map.close()
        os.close(self.fd)

    @contextmanager
    def locked(self, byte: int = _TIMING_BYTE) -> Iterator[None]:
        """Hold the timing lock, or the lock of another byte, inside the block. A killed process loses it."""
        fcntl.lockf(self.fd, fcntl.LOCK_EX, 1, byte)
        try:
            yield
        finally:
            fcntl.lockf(self.fd, fcntl.LOCK_UN, 1, byte)

    def is_free(self, byte: int) -> bool:
        """Whether no other process holds the lock of a byte."""
        try:
            fcntl.lockf(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except (BlockingIOError, PermissionError):
            return False
        fcntl.lockf(self.fd, fcntl.LOCK_UN, 1, byte)
        return True

    def reserved_bytes(self) -> int:
        """Bytes of the device's memory that all referees together have reserved."""
        return sum(self.slot(referee)[_RESERVED] for referee in range(MAX_REFEREES))

    def slot(self, referee: int) -> memoryview:
        """The 64-bit words of one referee; ``number``: 0 to MAX_REFEREES - 1."""
        begin = _HEADER + referee * _WORDS
        return self.words[begin : begin + _WORDS]

    def clear(self, referee: int) -> None:
        """Forget a referee that has ended."""
        words = self.slot(referee)
        words[_PID] = words[_STARTING] = words[_SINCE_NS] = words[_HELD] = words[_RESERVED] = 0
        words[_TICKED] = words[_WOKE] = words[_GREW] = 0
        for index in range(_SUPERVISORS):
            words[_FIRST_SUPERVISOR + index] = 0

    def pid(self, referee: int) -> int:
        return self.slot(referee)[_PID]

    def supervisors(self, referee: int) -> list[int]:
        return [pid for pid in self.all_supervisors(referee) if pid]

    def all_supervisors(self, referee: int) -> list[int]:
        """Process ids of the supervisors by place, 0 where there is none. A referee's first is its library's, unless
        that died.
        """
        return list(self.slot(referee)[_FIRST_SUPERVISOR : _FIRST_SUPERVISOR + _SUPERVISORS])

    def set_going(self) -> None:
        """Continue all processes that any referee stopped for a turn. Only for the holder of the lock."""
        for referee in range(MAX_REFEREES):
            if self.slot(referee)[_SINCE_NS]:
                self.go_on(referee)

    def stopped(self, referee: int) -> None:
        """Record that a referee is stopped from now on."""
        self.slot(referee)[_SINCE_NS] = time.monotonic_ns()

    def go_on(self, referee: int) -> None:
        """Continue a referee with its workers; the time that it was stopped is added up."""
        words = self.slot(referee)
        if words[_SINCE_NS]:
            words[_STOPPED_NS] += time.monotonic_ns() - words[_SINCE_NS]
            words[_SINCE_NS] = 0
        for index, supervisor in enumerate(self.all_supervisors(referee)):
            if supervisor and not words[_HELD] >> index & 1:
                processes.signal_tree(supervisor, signal.SIGCONT)
        _signal(words[_PID], signal.SIGCONT)

    @property
    def timed_s(self) -> float:
        """Seconds for which the lock has been held so far, by all referees of the device together."""
        return self.words[_TURNS_NS] / 1e9

    @property
    def stopping_s(self) -> float:
        """Of ``timed_s``, what it took until everybody else stood still."""
        return self.words[_STOPPING_NS] / 1e9

    @property
    def quiet_us(self) -> float:
        """The shortest flush of the cache seen on this device, in µs; 0 before the first."""
        return self.words[_QUIET_NS] / 1e3

    @quiet_us.setter
    def quiet_us(self, value: float) -> None:
        self.words[_QUIET_NS] = int(value * 1e3)

    @property
    def empty_us(self) -> float:
        """The shortest window without calls seen on this device, in µs; 0 before the first. On a CPU alone."""
        return self.words[_EMPTY_NS] / 1e3

    @empty_us.setter
    def empty_us(self, value: float) -> None:
        self.words[_EMPTY_NS] = int(value * 1e3)


class TimingLock:
    """One referee's use of the lock."""

    def __init__(self, page: SharedPage, referee: int) -> None:
        self.page = page
        self.referee = referee
        self._mine = page.slot(referee)
        page.clear(referee)
        self._mine[_STOPPED_NS] = 0
        self._mine[_PID] = os.getpid()
        self._waited_ns = 0

    def now(self) -> float:
        """Monotonic seconds without those in which this referee was stopped or waited for its turn."""
        return (time.monotonic_ns() - self._mine[_STOPPED_NS] - self._waited_ns) / 1e9

    @property
    def waited_ns(self) -> int:
        """Nanoseconds so far in which this referee was stopped or waited for its turn."""
        return self._mine[_STOPPED_NS] + self._waited_ns

    @property
    def stopped_s(self) -> float:
        """Seconds so far in which this referee was stopped during another's turn."""
        return self._mine[_STOPPED_NS] / 1e9

    @property
    def waited_s(self) -> float:
        """Seconds so far in which it waited for its turn, or for memory that others held."""
        return self._waited_ns / 1e9

    @contextmanager
    def starting(self) -> Iterator[None]:
        """This referee is not stopped inside the block: a worker that its supervisor forks in another's turn would run
        on in it.
        """
        self._mine[_STARTING] = 1
        try:
            yield
        finally:
            self._mine[_STARTING] = 0

    def add(self, supervisor: int) -> None:
        """Raises RuntimeError when there are too many."""
        for index in range(_FIRST_SUPERVISOR, _FIRST_SUPERVISOR + _SUPERVISORS):
            if not self._mine[index]:
                self._mine[index] = supervisor
                return
        raise RuntimeError(f"more than {_SUPERVISORS} workers of one referee")

    def remove(self, supervisor: int) -> None:
        self.let_go(supervisor)
        for index in range(_FIRST_SUPERVISOR, _FIRST_SUPERVISOR + _SUPERVISORS):
            if self._mine[index] == supervisor:
                self._mine[index] = 0

    def hold(self, supervisor: int) -> None:
        """This referee stops a worker itself: the end of another's turn does not continue it."""
        self._mine[_HELD] |= self._bit(supervisor)

    def let_go(self, supervisor: int) -> None:
        """The opposite of ``hold``."""
        self._mine[_HELD] &= ~self._bit(supervisor)

    def _bit(self, supervisor: int) -> int:
        supervisors = self.page.all_supervisors(self.referee)
        return 1 << supervisors.index(supervisor) if supervisor in supervisors else 0

    def was_restless(self) -> str:
        """How a worker of this referee ran in others' turns, since this was asked last; empty if it did not."""
        ticked, woke, grew = self._mine[_TICKED], self._mine[_WOKE], self._mine[_GREW]
        self._mine[_TICKED] = self._mine[_WOKE] = self._mine[_GREW] = 0
        seen = {
            "a stopped thread ran": woke,
            "there was a new thread": grew,
            "threads had time of their own that stopped late, or for a moment": ticked if ticked > _MOST_HINTS else 0,
        }
        return "; ".join(f"in {number_of(count, 'turn')} {what}" for what, count in seen.items() if count)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the timing lock, with all other referees and workers of the device stopped inside the block."""
        asked_ns, stopped_ns = time.monotonic_ns(), self._mine[_STOPPED_NS]
        with self.page.locked():
            begun_ns = self._waited("the timing lock", asked_ns, stopped_ns)
            stopped: list[int] = []
            try:
                with trace.span("stop the others"):
                    self._stop_others(stopped)
                    standing = {referee: self._tasks(referee) for referee in stopped}
                self.page.words[_STOPPING_NS] += time.monotonic_ns() - begun_ns
                yield
                self._look_who_moved(standing)
            finally:
                with trace.span("resume the others"):
                    for referee in stopped:
                        self.page.go_on(referee)
                ended_ns = time.monotonic_ns()
                self.page.words[_TURNS_NS] += ended_ns - begun_ns
                trace.record("turn", begun_ns, ended_ns)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A turn in which nothing is timed; it is valid even if another's worker ran."""
        with suppress(Disturbed), self.turn():
            yield

    @contextmanager
    def reserved(self, nbytes: float, most: float) -> Iterator[None]:
        """Reserve bytes of the device's memory inside the block, of at most ``most`` that all may reserve together.

        Who waits first is first; who needs more than ``most`` waits until nobody else has reserved any. Nobody is
        stopped. To be entered before the timing lock, never inside a turn, and once at a time.
        """
        asked_ns, stopped_ns = time.monotonic_ns(), self._mine[_STOPPED_NS]
        with self.page.locked(_ROOM_BYTE):
            while (others := self.page.reserved_bytes()) and others + nbytes > most:
                time.sleep(_ROOM_POLL_S)
            self._mine[_RESERVED] = max(1, int(nbytes))
        begun_ns = self._waited("room in memory", asked_ns, stopped_ns)
        try:
            yield
        finally:
            self._mine[_RESERVED] = 0
            trace.record("hold room in memory", begun_ns, time.monotonic_ns())

    def has_room(self, nbytes: float, most: float) -> bool:
        """Whether ``reserved`` would not wait, were it entered now."""
        if not self.page.is_free(_ROOM_BYTE):
            return False
        others = self.page.reserved_bytes()
        return not others or others + nbytes <= most

    def _waited(self, what: str, asked_ns: int, stopped_ns: int) -> int:
        """Record a wait that ends now; now."""
        now_ns = time.monotonic_ns()
        trace.record(f"wait for {what}", asked_ns, now_ns)
        self._waited_since(asked_ns, stopped_ns)
        return now_ns

    @property
    def is_alone(self) -> bool:
        """Whether this is the device's only referee."""
        return not any(self.page.pid(each) for each in range(MAX_REFEREES) if each != self.referee)

    def pause(self, seconds: float) -> None:
        """Sleep while others work; the time counts against no deadline of this referee's."""
        asked_ns, stopped_ns = time.monotonic_ns(), self._mine[_STOPPED_NS]
        time.sleep(seconds)
        self._waited_since(asked_ns, stopped_ns)

    def _waited_since(self, asked_ns: int, stopped_ns: int) -> None:
        """Add a wait that ends now. ``stopped_ns``: how long this referee had been stopped when it began."""
        # Part of the wait may have been spent stopped, which is counted there.
        self._waited_ns += time.monotonic_ns() - asked_ns - (self._mine[_STOPPED_NS] - stopped_ns)

    def _tasks(self, referee: int) -> _Tasks:
        """All threads of another referee's workers, by supervisor."""
        supervisors = self.page.supervisors(referee)
        return {each: processes.tasks_of(processes.descendants(each)) for each in supervisors}

    def _look_who_moved(self, standing: Mapping[int, _Tasks]) -> None:
        """Record whose workers ran during the turn that ends. Raises Disturbed where some did."""
        disturbed = False
        for referee, before in standing.items():
            after = self._tasks(referee)
            if any(processes.woken(*each) for each in _of_each(before, after)):
                disturbed = True
                self._blame(referee, before, after)
        if disturbed:
            raise Disturbed

    def _blame(self, referee: int, before: _Tasks, after: _Tasks) -> None:
        """Count the turn for a referee whose worker ran; the timeline gets its threads."""
        slot = self.page.slot(referee)
        ran = [task for each in _of_each(before, after) for task in processes.ran_own_code(*each)]
        proof = next((each for each in ran if not each.is_brief), None)
        if proof is not None:
            slot[_GREW if proof.before is None else _WOKE] += 1
        elif ran or any(processes.used_own_time(*each) for each in _of_each(before, after)):
            slot[_TICKED] += 1
        now_ns = time.monotonic_ns()
        trace.record("another ran on", now_ns, now_ns, referee=referee, threads=str(ran))

    def _stop_others(self, stopped: list[int]) -> None:
        """Stop all other referees, then their workers; adds who to ``stopped`` as it goes."""
        deadline = time.monotonic() + _STARTING_DEADLINE_S
        waiting = [each for each in range(MAX_REFEREES) if each != self.referee and self.page.slot(each)[_PID]]
        while waiting:
            for referee in waiting:
                self.page.stopped(referee)
                _signal(self.page.slot(referee)[_PID], signal.SIGSTOP)
            processes.await_stopped([self.page.slot(referee)[_PID] for referee in waiting], processes.TURN_WAIT_S)
            late = time.monotonic() > deadline
            starting = [each for each in waiting if self.page.slot(each)[_STARTING] and not late]
            stopped += set(waiting).difference(starting)
            for referee in starting:
                # Its new worker would not be found, and run on.
                self.page.slot(referee)[_SINCE_NS] = 0
                _signal(self.page.slot(referee)[_PID], signal.SIGCONT)
            if starting:
                time.sleep(0.0005)
            waiting = starting
        supervisors = [supervisor for referee in stopped for supervisor in self.page.supervisors(referee)]
        processes.stop_trees(supervisors, wait_s=processes.TURN_WAIT_S)


def _of_each(before: _Tasks, after: _Tasks) -> list[tuple[_Threads, _Threads]]:
    """The threads of each worker that was there, then and now.

    A supervisor that had none was late (``_STARTING_DEADLINE_S``) and has forked it meanwhile: nothing of a candidate
    runs in it before its referee, which is stopped, asks for that.
    """
    return [(tasks, after.get(each, {})) for each, tasks in before.items() if tasks]


def _signal(pid: int, number: int) -> None:
    if pid:  # 0 would mean this process and all of its group
        processes.signal_one(pid, number)


def _page_bytes() -> int:
    size = 8 * (_HEADER + MAX_REFEREES * _WORDS)
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
