"""One window: calls of one side, released, clocked and secured by the referee.

On CUDA a window's calls are queued behind a flag in host memory, then the referee writes the inputs, flushes the cache
and releases the flag: the device runs all calls without waiting for Python, and the referee sees the mark behind the
last one within a microsecond. Nothing that a worker says enters a time.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final, Protocol

import torch

from kgbench.core.details.failures import Deadline, Limit, QueueStalled
from kgbench.core.details.where import Purpose, Where
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Window
from kgbench.harness.clock.outputs import SecuredOutputs
from kgbench.harness.clock.quiet import OTHERS_DEADLINE_S, DeviceBusy, Freezer, QuietDevice
from kgbench.harness.clock.window_inputs import WindowInputs
from kgbench.harness.machine import trace
from kgbench.harness.wire.buffers import ControlPage
from kgbench.harness.wire.forks import EndCause
from kgbench.harness.wire.requests import OpenWindow
from kgbench.harness.workers.handle import WorkerFailed, WorkerHandle
from kgbench.harness.workers.started import Clock, WorkerSide
from kgbench.problem.cases import Case

QUEUE_DEADLINE_S: Final = 3.0
"""Seconds in which a worker must have queued a window's calls; later, one of them waits for the device."""
TRIAL_DEADLINE_S: Final = 0.5
"""The same where it is only tried whether calls can be queued: what cannot be is timed with its launches."""
TRIAL_QUIET_S: Final = 0.05
"""Seconds in which the device must be found quiet beside calls that the library has queued, where this is tried."""
STALLS: Final = 3
"""Attempts to queue a window before its worker fails: a kernel's first launch loads it, which waits for the device."""
HOLD_S: Final = 1.0
"""Seconds that a queued window may run with its worker stopped; no honest window of many calls is as long."""
SPINS_PER_LOOK: Final = {"cuda": 20_000, "cpu": 200}
"""Looks at a mark, per kind of device, between two looks at whether the worker has failed."""
SPIN_PAUSE_S: Final = 20e-6
"""Seconds between two looks at a mark on the CPU, where the worker needs the core more than the referee does."""


@dataclass(frozen=True)
class OverheadWindow:
    """A window of one minimal kernel that reads and writes nothing: the overhead of a window."""

    side: str
    queued: bool
    kind: ClassVar[str] = "overhead"
    calls: ClassVar[int] = 1
    inputs: ClassVar[None] = None

    def at_done(self, side: WorkerSide, frozen: Callable[[], AbstractContextManager[None]]) -> None:
        """Nothing happens at the mark after the last call."""

    def at_secured(self, side: WorkerSide) -> None:
        """Nothing happens at the mark behind the outputs."""


@dataclass(frozen=True)
class TimedWindow:
    """A window of calls on inputs that nobody has seen before."""

    side: str
    inputs: WindowInputs
    queued: bool
    kind: str = "window"
    """The kind as in ``Window``; for windows that are not scored ``warm``, ``watched`` or ``probe``."""

    @property
    def calls(self) -> int:
        return len(self.inputs.rows)

    def at_done(self, side: WorkerSide, frozen: Callable[[], AbstractContextManager[None]]) -> None:
        """Called as soon as the worker says that its calls are done; inside ``frozen()`` the candidate is stopped."""

    def at_secured(self, side: WorkerSide) -> None:
        """Called when the outputs lie in the buffer, before they are copied."""


@dataclass(frozen=True)
class ProbeWindow(TimedWindow):
    """A window like a timed one until its calls are done; then its inputs are overwritten with ``replacement``.

    A candidate that computes only after it said that it was done computes from these.
    """

    replacement: WindowInputs | None = None
    kind: str = "probe"

    def at_done(self, side: WorkerSide, frozen: Callable[[], AbstractContextManager[None]]) -> None:
        if self.replacement is not None:
            with frozen():
                self.replacement.overwrite(side)

    def at_secured(self, side: WorkerSide) -> None:
        if self.replacement is not None:
            self.inputs.overwrite(side)


class Sampling(Protocol):
    """Watches a candidate from outside while its calls run."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Probing(Protocol):
    """What has windows in the midst of timed ones sampled."""

    def sampled(self, case: Case, calls: int) -> AbstractContextManager[Sampling | None]:
        """For one window of so many calls of the candidate's; None where this machine gives no samples."""

    def is_enough(self, case: Case) -> bool:
        """Whether a case needs no more of them."""


class WindowRunner:
    """Runs windows of a library and a candidate; while one is the library's, the candidate is stopped."""

    def __init__(
        self,
        sides: dict[str, WorkerSide],
        clocks: dict[str, Clock],
        device: QuietDevice,
        outputs: dict[str, SecuredOutputs],
        limit_s: float,
        freezer: Freezer,
    ) -> None:
        self.sides = sides
        self.clocks = clocks
        self.device = device
        self.outputs = outputs
        """Copies of each side's last window, by side."""
        self.limit_s = limit_s
        """Seconds that a window may take."""
        self.freezer = freezer
        self.turns = device.turns
        self.timing = False
        """True while this referee holds the timing lock."""
        self.overhead_us = 0.0
        """Time in µs that a window takes without its calls."""
        self.owed: dict[str, tuple[int, Where]] = {}
        """Sides whose reply to a window, by its number, was not read yet: the worker may be stopped."""
        self.sampler: Sampling | None = None
        """CPU only: samples the machine from the release of a window to its mark."""

    @property
    def queues(self) -> bool:
        """Windows are queued before their release, where the candidate's calls can be."""
        return self.device.cuda

    @property
    def candidate(self) -> WorkerHandle:
        return self.sides["candidate"].handle

    @trace.span("await others' work")
    def await_others(self) -> None:
        """Wait, at the beginning of a turn, for the end of what others queued. Raises DeviceBusy."""
        self.freezer.await_quiet(OTHERS_DEADLINE_S)

    def run(
        self, plan: OverheadWindow | TimedWindow, where: Where, meanwhile: Callable[[], None] = lambda: None
    ) -> Window:
        """Run one window; its outputs are in ``outputs`` afterwards. Raises WorkerFailed, DeviceBusy, OutOfMemoryError.

        ``meanwhile`` is called while the worker queues its calls; where it finds no memory, it is left undone.
        """
        side, clock = self.sides[plan.side], self.clocks[plan.side]
        self.settle(plan.side)
        hostile = side.handle is self.candidate
        self._clear_for(side)
        self._open(side, clock, plan, where, meanwhile)
        try:
            return self._timed(plan, side, clock, hostile, where)
        except (DeviceBusy, torch.OutOfMemoryError):
            # The worker is to be asked again: it ends this window, and its reply is read before that.
            clock.page.words[ControlPage.RELEASE] = clock.epoch
            self.owed[plan.side] = clock.epoch, where
            raise

    def _clear_for(self, side: WorkerSide) -> None:
        """Stop the candidate before the library's calls, once its own are done. Raises DeviceBusy."""
        if side.handle is self.candidate:
            return
        self.freezer.freeze(self.candidate)
        if self.timing:
            self.freezer.await_quiet()

    def _timed(
        self, plan: OverheadWindow | TimedWindow, side: WorkerSide, clock: Clock, hostile: bool, where: Where
    ) -> Window:
        """Fill, release, clock and secure a window that its worker has opened."""
        if plan.queued:
            # All that is left is the device's work: nobody on the worker's side can raise a mark any more.
            self.freezer.freeze(side.handle)
        if plan.inputs is not None:
            plan.inputs.fill(side)
        self._flush(hostile)
        done_us, released_ns = self._release(side, clock, where)
        plan.at_done(side, self._frozen)
        self._spin(side, clock, ControlPage.SECURED, self.turns.now() + self.limit_s, where)
        plan.at_secured(side)
        # What runs until all stand still counts; waiting for a processor to stop on is the machine's.
        waited_us = self.freezer.freeze(side.handle)
        if plan.inputs is None:
            self.outputs[plan.side].secure(side, 0, 0)
        else:
            self.outputs[plan.side].secure(side, plan.calls, plan.inputs.layout.stride)
        ended_ns = time.perf_counter_ns()
        secured_us = (ended_ns - released_ns) / 1e3 - waited_us
        trace.record("window", released_ns, ended_ns, side=plan.side, kind=plan.kind, calls=plan.calls)
        if not hostile:
            self.candidate.check_frozen()
        self.owed[plan.side] = clock.epoch, where
        return Window(plan.side, plan.kind, plan.calls, done_us, secured_us)

    def can_queue(self, name: str, inputs: WindowInputs) -> bool:
        """Whether a side can queue these calls without waiting for the device, and the library's leave the device quiet
        until they are released. Raises WorkerFailed, DeviceBusy.

        Calls that wait for each other on several streams, as cuDNN's transposed convolutions do, may keep the device
        to themselves for whole time slices while they wait.
        """
        side, clock, where = self.sides[name], self.clocks[name], inputs.layout.first.where
        where = replace(where, purpose=Purpose.TIMING)
        self.settle(name)
        # What keeps the device busy from here on is the library's: a candidate gains nothing by being busy itself.
        self._clear_for(side)
        inputs.fill(side)
        self.device.flush()
        self._post(side, clock, TimedWindow(name, inputs, True), where)
        if not self._queued(side, clock, TRIAL_DEADLINE_S, where):
            return False
        left_alone = side.handle is self.candidate or self.device.is_quiet(TRIAL_QUIET_S)
        clock.page.words[ControlPage.RELEASE] = clock.epoch
        side.handle.reply(clock.epoch, self.limit_s, where)
        return left_alone

    @trace.span("settle")
    def settle(self, name: str) -> None:
        """Continue a side's worker and read its outstanding reply."""
        side = self.sides[name]
        if side.handle.is_frozen:
            side.handle.thaw()
        if name in self.owed:
            epoch, where = self.owed.pop(name)
            side.handle.reply(epoch, self.limit_s, where)

    def release_outputs(self) -> None:
        """Give back the memory of both sides' copies."""
        for outputs in self.outputs.values():
            outputs.release()

    def settle_library(self) -> None:
        """Make the library ready for the next turn, however this one ended; if that fails, its next request raises."""
        with contextlib.suppress(WorkerFailed):
            self.settle("library")

    @contextlib.contextmanager
    def _frozen(self) -> Iterator[None]:
        """The candidate is stopped inside the block."""
        self.freezer.freeze(self.candidate)
        yield
        self.candidate.thaw()

    def _flush(self, hostile: bool) -> None:
        """Make the cache cold; before a window of the library's the device must be quiet, too. Raises DeviceBusy."""
        short = self.device.is_short(self.device.flush())
        if self.timing and not hostile and not short:
            self.freezer.await_quiet()

    @trace.span("queue")
    def _open(
        self,
        side: WorkerSide,
        clock: Clock,
        plan: OverheadWindow | TimedWindow,
        where: Where,
        meanwhile: Callable[[], None],
    ) -> None:
        """Have the worker queue its calls, or wait beside them, until the release. Raises WorkerFailed."""
        self._post(side, clock, plan, where)
        with contextlib.suppress(torch.OutOfMemoryError):
            meanwhile()
        if not plan.queued:
            side.handle.reply(clock.epoch, self.limit_s, where)
            return
        for attempt in range(STALLS):
            if attempt:
                self._post(side, clock, plan, where)
            if self._queued(side, clock, QUEUE_DEADLINE_S, where):
                return
        side.handle.kill(EndCause.DEADLINE)
        raise WorkerFailed(side.handle, Outcome.TIMEOUT, QueueStalled(STALLS), where, side.handle.log_tail)

    def _queued(self, side: WorkerSide, clock: Clock, deadline_s: float, where: Where) -> bool:
        """Wait until the worker has queued the calls it was asked for. Returns False if it waited for the device in
        between: the flag is then released, and the window's time is not used.
        """
        ready = select.select([side.handle.channel, side.handle.control], [], [], deadline_s)[0]
        if not ready:
            clock.page.words[ControlPage.RELEASE] = clock.epoch
        side.handle.reply(clock.epoch, self.limit_s, where)
        if not ready:
            side.handle.reply(clock.epoch, self.limit_s, where)
        return bool(ready)

    def _post(self, side: WorkerSide, clock: Clock, plan: OverheadWindow | TimedWindow, where: Where) -> None:
        """Ask for a window of calls."""
        clock.epoch += 1
        request = OpenWindow(clock.epoch, plan.calls, plan.queued, overhead=plan.inputs is None)
        side.handle.post(request, clock.epoch, where)

    def _release(self, side: WorkerSide, clock: Clock, where: Where) -> tuple[float, int]:
        """Let the window run; microseconds to the mark after its last call, and when it was released."""
        words, epoch = clock.page.words, clock.epoch
        deadline = self.turns.now() + self.limit_s
        if self.sampler is not None:
            self.sampler.start()
        released_ns = time.perf_counter_ns()
        words[ControlPage.RELEASE] = epoch
        self._spin(side, clock, ControlPage.DONE, deadline, where)
        if self.sampler is not None:
            self.sampler.stop()
        return (time.perf_counter_ns() - released_ns) / 1e3, released_ns

    def _spin(self, side: WorkerSide, clock: Clock, word: int, deadline: float, where: Where) -> None:
        """Wait for a mark; looks up now and then whether the worker has failed instead. Raises WorkerFailed."""
        words, epoch, cuda = clock.page.words, clock.epoch, self.device.cuda
        spins, spins_per_look = 0, SPINS_PER_LOOK["cuda" if cuda else "cpu"]
        held_until = self.turns.now() + HOLD_S
        while words[word] != epoch:
            spins += 1
            if not cuda:
                time.sleep(SPIN_PAUSE_S)
            if spins % spins_per_look == 0:
                if self.turns.now() > held_until and side.handle.is_frozen:
                    # A device fault is told by the worker alone, and only when it runs.
                    side.handle.thaw()
                self._look(side, words, word, epoch, deadline, where)

    def _look(self, side: WorkerSide, words: Any, word: int, epoch: int, deadline: float, where: Where) -> None:
        """Raises WorkerFailed where a window takes too long or its worker has failed."""
        if self.turns.now() > deadline:
            side.handle.kill(EndCause.DEADLINE)
            late = Deadline(Limit.WINDOW, self.limit_s)
            raise WorkerFailed(side.handle, Outcome.TIMEOUT, late, where, side.handle.log_tail)
        ready = select.select([side.handle.channel, side.handle.control], [], [], 0)[0]
        if ready and words[word] != epoch:
            # An error frame or the news of its end; either raises.
            side.handle.reply(epoch, 1.0, where)
