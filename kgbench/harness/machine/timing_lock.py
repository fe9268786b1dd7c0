"""The timing lock of a device: one referee at a time is timed, and the workers of all others are stopped meanwhile.

All referees of a device share one page of memory. It holds the process ids of each one's workers and how long each was
stopped; a lock on the page's file is the timing lock. A referee's *turn* is a time for which it holds the lock and has
every other referee of the device stopped with its workers; what they lose counts against no deadline of theirs
(``now``). The lock ends with the process that holds it; the coordinator then continues what that process had stopped.
What takes a good part of the device's memory is reserved in the page first, which stops nobody.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final

from kgbench.core.text import number_of
from kgbench.harness.machine import processes, trace
from kgbench.harness.machine.shared_page import (
    FIRST_SUPERVISOR,
    GREW,
    HELD,
    MAX_REFEREES,
    PID,
    RESERVED,
    ROOM_BYTE,
    SINCE_NS,
    STARTING,
    STOPPED_NS,
    STOPPING_NS,
    SUPERVISORS,
    TICKED,
    TURNS_NS,
    WOKE,
    SharedPage,
)

_MOST_HINTS: Final = 2
"""Turns in which a worker may seem to have run, by clock ticks or for a moment. Those turns count for nobody; a third
one is the worker's fault."""
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


class TimingLock:
    """One referee's use of the lock."""

    def __init__(self, page: SharedPage, referee: int, cores: Collection[int] = ()) -> None:
        self.page = page
        self.referee = referee
        self.cores = cores
        """Processor cores for the device's turns; none where the session has too few."""
        self._mine = page.slot(referee)
        page.clear(referee)
        self._mine[STOPPED_NS] = 0
        self._mine[PID] = os.getpid()
        self._waited_ns = 0

    def now(self) -> float:
        """Monotonic seconds without those in which this referee was stopped or waited for its turn."""
        return (time.monotonic_ns() - self._mine[STOPPED_NS] - self._waited_ns) / 1e9

    @property
    def waited_ns(self) -> int:
        """Nanoseconds so far in which this referee was stopped or waited for its turn."""
        return self._mine[STOPPED_NS] + self._waited_ns

    @property
    def stopped_s(self) -> float:
        """Seconds so far in which this referee was stopped during another's turn."""
        return self._mine[STOPPED_NS] / 1e9

    @property
    def waited_s(self) -> float:
        """Seconds so far in which it waited for its turn, or for memory that others held."""
        return self._waited_ns / 1e9

    @contextmanager
    def starting(self) -> Iterator[None]:
        """This referee is not stopped inside the block: a worker that its supervisor forks in another's turn would run
        on in it.
        """
        self._mine[STARTING] = 1
        try:
            yield
        finally:
            self._mine[STARTING] = 0

    def add(self, supervisor: int) -> None:
        """Raises RuntimeError when there are too many."""
        for index in range(FIRST_SUPERVISOR, FIRST_SUPERVISOR + SUPERVISORS):
            if not self._mine[index]:
                self._mine[index] = supervisor
                return
        raise RuntimeError(f"more than {SUPERVISORS} workers of one referee")

    def remove(self, supervisor: int) -> None:
        self.let_go(supervisor)
        for index in range(FIRST_SUPERVISOR, FIRST_SUPERVISOR + SUPERVISORS):
            if self._mine[index] == supervisor:
                self._mine[index] = 0

    def hold(self, supervisor: int) -> None:
        """This referee stops a worker itself: the end of another's turn does not continue it."""
        self._mine[HELD] |= self._bit(supervisor)

    def let_go(self, supervisor: int) -> None:
        """The opposite of ``hold``."""
        self._mine[HELD] &= ~self._bit(supervisor)

    def _bit(self, supervisor: int) -> int:
        supervisors = self.page.all_supervisors(self.referee)
        return 1 << supervisors.index(supervisor) if supervisor in supervisors else 0

    def was_restless(self) -> str:
        """How a worker of this referee ran in others' turns, since this was asked last; empty if it did not."""
        ticked, woke, grew = self._mine[TICKED], self._mine[WOKE], self._mine[GREW]
        self._mine[TICKED] = self._mine[WOKE] = self._mine[GREW] = 0
        seen = {
            "a stopped thread ran": woke,
            "there was a new thread": grew,
            "threads had time of their own that stopped late, or for a moment": ticked if ticked > _MOST_HINTS else 0,
        }
        return "; ".join(f"in {number_of(count, 'turn')} {what}" for what, count in seen.items() if count)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Hold the timing lock, with all other referees and workers of the device stopped inside the block."""
        asked_ns, stopped_ns = time.monotonic_ns(), self._mine[STOPPED_NS]
        with self.page.locked():
            begun_ns = self._waited("the timing lock", asked_ns, stopped_ns)
            stopped: list[int] = []
            try:
                with trace.span("stop the others"):
                    self._stop_others(stopped)
                    standing = {referee: self._tasks(referee) for referee in stopped}
                self.page.words[STOPPING_NS] += time.monotonic_ns() - begun_ns
                yield
                self._look_who_moved(standing)
            finally:
                with trace.span("resume the others"):
                    for referee in stopped:
                        self.page.go_on(referee)
                ended_ns = time.monotonic_ns()
                self.page.words[TURNS_NS] += ended_ns - begun_ns
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
        asked_ns, stopped_ns = time.monotonic_ns(), self._mine[STOPPED_NS]
        with self.page.locked(ROOM_BYTE):
            while not self._fits(nbytes, most):
                time.sleep(_ROOM_POLL_S)
            self._mine[RESERVED] = max(1, int(nbytes))
        begun_ns = self._waited("room in memory", asked_ns, stopped_ns)
        try:
            yield
        finally:
            self._mine[RESERVED] = 0
            trace.record("hold room in memory", begun_ns, time.monotonic_ns())

    def has_room(self, nbytes: float, most: float) -> bool:
        """Whether ``reserved`` would not wait, were it entered now."""
        return self.page.is_free(ROOM_BYTE) and self._fits(nbytes, most)

    def _fits(self, nbytes: float, most: float) -> bool:
        """Whether so much fits beside what is reserved; where nothing is, anything does."""
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
        asked_ns, stopped_ns = time.monotonic_ns(), self._mine[STOPPED_NS]
        time.sleep(seconds)
        self._waited_since(asked_ns, stopped_ns)

    def _waited_since(self, asked_ns: int, stopped_ns: int) -> None:
        """Add a wait that ends now. ``stopped_ns``: how long this referee had been stopped when it began."""
        # Part of the wait may have been spent stopped, which is counted there.
        self._waited_ns += time.monotonic_ns() - asked_ns - (self._mine[STOPPED_NS] - stopped_ns)

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
            slot[GREW if proof.before is None else WOKE] += 1
        elif ran or any(processes.used_own_time(*each) for each in _of_each(before, after)):
            slot[TICKED] += 1
        now_ns = time.monotonic_ns()
        trace.record("another ran on", now_ns, now_ns, referee=referee, threads=str(ran))

    def _stop_others(self, stopped: list[int]) -> None:
        """Stop all other referees, then their workers; adds who to ``stopped`` as it goes."""
        deadline = time.monotonic() + _STARTING_DEADLINE_S
        waiting = [each for each in range(MAX_REFEREES) if each != self.referee and self.page.slot(each)[PID]]
        while waiting:
            for referee in waiting:
                self.page.stopped(referee)
                self.page.signal(referee, signal.SIGSTOP)
            processes.await_stopped([self.page.slot(referee)[PID] for referee in waiting], processes.TURN_WAIT_S)
            late = time.monotonic() > deadline
            starting = [each for each in waiting if self.page.slot(each)[STARTING] and not late]
            stopped += set(waiting).difference(starting)
            for referee in starting:
                # Its new worker would not be found, and run on.
                self.page.slot(referee)[SINCE_NS] = 0
                self.page.signal(referee, signal.SIGCONT)
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
