"""Which candidate goes to which slot of a cluster: those of one problem to slots that have just judged it.

A problem's library, and the oracle's answers for it, are warm where it was judged last. Knows nothing of Ray.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kgbench.core.types import Result
from kgbench.harness.machine.settings import Job

MOST_OVERTAKEN: Final = 64
"""How often others of a warm problem may go before the oldest candidate."""


@dataclass(eq=False)
class Task:
    """A candidate on its way to a verdict."""

    job: Job
    on_event: Callable[[str, str], None]
    future: Future[Result] = field(default_factory=Future)
    lost: int = 0
    """How often its device was lost before it had a verdict."""
    overtaken: int = 0
    number: int = -1


class Slot(NamedTuple):
    """The place of one candidate on a device."""

    device: Hashable
    number: int


class TaskQueue:
    """Used from many threads."""

    def __init__(self) -> None:
        self._tasks: dict[int, Task] = {}
        """Tasks by number, the oldest first."""
        self._numbers = itertools.count()
        self._warm: dict[Slot, str] = {}
        """The problem that was judged last, by slot."""
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def __len__(self) -> int:
        with self._changed:
            return len(self._tasks)

    def put(self, task: Task) -> None:
        """A task that was lost goes before all that came after it."""
        with self._changed:
            if self._error is not None:
                task.future.set_exception(self._error)
                return
            if task.number < 0:
                task.number = next(self._numbers)
                self._tasks[task.number] = task
            else:
                self._tasks = dict(sorted({**self._tasks, task.number: task}.items()))
            self._changed.notify()

    def take(self, slot: Slot, ended: Callable[[], bool]) -> Task | None:
        """The task for a slot, once there is one; None where the queue is closed or ``ended()`` is true."""
        with self._changed:
            while not self._tasks:
                if self._error is not None or ended():
                    return None
                self._changed.wait()
            if self._error is not None or ended():
                self._changed.notify()  # what woke this one is another's
                return None
            task = self._chosen(slot)
            del self._tasks[task.number]
            self._warm[slot] = task.job.problem_id
            return task

    def wake(self) -> None:
        """Wake waiting threads, which ask ``ended()`` again."""
        with self._changed:
            self._changed.notify_all()

    def forget(self, device: Hashable) -> None:
        """A device is gone, and what was warm there."""
        with self._changed:
            self._warm = {slot: problem for slot, problem in self._warm.items() if slot.device != device}

    def close(self, error: BaseException) -> None:
        """Make all tasks, waiting and new ones, raise ``error``."""
        with self._changed:
            self._error = self._error or error
            left, self._tasks = list(self._tasks.values()), {}
            self._changed.notify_all()
        for task in left:
            task.future.set_exception(self._error)

    def _chosen(self, slot: Slot) -> Task:
        oldest = next(iter(self._tasks.values()))
        if oldest.overtaken >= MOST_OVERTAKEN:
            return oldest
        here = {problem for at, problem in self._warm.items() if at.device == slot.device}
        everywhere = set(self._warm.values())
        last = self._warm.get(slot)
        wishes: tuple[Callable[[str], bool], ...] = (
            lambda problem: problem == last,
            here.__contains__,
            lambda problem: problem not in everywhere,
        )
        for wished in wishes:
            found = next((task for task in self._tasks.values() if wished(task.job.problem_id)), None)
            if found is not None:
                oldest.overtaken += found is not oldest
                return found
        return oldest
