"""Detects from the duration of cache flushes whether another process uses the device."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from typing import Final, NoReturn

import torch

from kgbench.core.details.absence import Fault
from kgbench.core.details.failures import Breach, RuleBroken
from kgbench.core.details.place import place
from kgbench.core.details.where import Where
from kgbench.core.outcomes import Outcome
from kgbench.harness.machine import trace
from kgbench.harness.machine.timing_lock import STAYS_BUSY, TimingLock
from kgbench.harness.wire.device import GPU
from kgbench.harness.wire.forks import EndCause
from kgbench.harness.workers.handle import Unmeasured, WorkerFailed, WorkerHandle

FLUSH_BYTES: Final = 256 << 20
"""Bytes written to push everything out of a GPU's cache."""
QUIET_FLUSHES: Final = 3
"""Short flushes in a row after which the device counts as quiet once a flush was not short."""
QUIET_US: Final = 60.0
"""Time in µs by which a short flush may exceed QUIET_FACTOR times the shortest one seen on the device."""
QUIET_FACTOR: Final = 1.5
"""Factor on the shortest flush seen on the device; a short flush takes at most that and QUIET_US more."""
QUIET_DEADLINE_S: Final = 0.5
"""Seconds to wait for a quiet device before a window of the library's."""
LEFT_DEADLINE_S: Final = 5.0
"""Seconds that the driver may take to end what a killed process had on the device."""
OTHERS_DEADLINE_S: Final = 5.0
"""Seconds at the beginning of a turn for what others have queued, such as calls of 2^31 elements and their judging."""


class DeviceBusy(Exception):
    """The device is busy although all candidates are stopped: nothing can be timed now."""


class Freezer:
    """Keeps other candidates off the device: stops their workers and waits for the work that they queued."""

    def __init__(self, device: QuietDevice) -> None:
        self.device = device

    def freeze(self, worker: WorkerHandle) -> float:
        """Stop a worker. Returns the µs in which none of its threads ran. Raises WorkerFailed where a thread goes on
        running.
        """
        return 0.0 if worker.is_frozen else worker.freeze()

    def await_quiet(self, deadline_s: float = QUIET_DEADLINE_S) -> None:
        """Wait for the end of what stopped processes have left on the device. Raises DeviceBusy."""
        if not self.device.is_quiet(deadline_s):
            raise DeviceBusy


class QuietDevice:
    """The device that windows run on, with a cache that can be flushed. On a CPU it is always quiet."""

    def __init__(self, device: torch.device, turns: TimingLock, choose: random.Random) -> None:
        self.cuda = device.type == "cuda"
        self.turns = turns
        self.choose = choose
        self.device = device
        self.scratch: torch.Tensor | None = None

    @trace.span("flush")
    def flush(self) -> float:
        """Push inputs and outputs out of the cache, so that every call starts cold; the microseconds that it took.

        What was asked of the device before has ended then. Raises OutOfMemoryError.
        """
        if not self.cuda:
            return 0.0
        if self.scratch is None:
            self.scratch = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device=self.device)
        # What was asked of the device before is no part of the time.
        GPU.wait()
        begun_ns = time.perf_counter_ns()
        self.scratch.fill_(self.choose.randrange(256))
        GPU.wait()
        return (time.perf_counter_ns() - begun_ns) / 1e3

    @trace.span("await a quiet device")
    def is_quiet(self, deadline_s: float = QUIET_DEADLINE_S) -> bool:
        """Whether flushes soon take no longer than they have taken on this device: one that works for another process,
        too, takes turns of milliseconds."""
        in_a_row, needed, until = 0, 1, time.monotonic() + deadline_s
        while self.cuda and in_a_row < needed:
            if self.is_short(self.flush()):
                in_a_row += 1
            else:
                in_a_row, needed = 0, QUIET_FLUSHES
            if time.monotonic() > until:
                return False
        return True

    def is_short(self, flush_us: float) -> bool:
        """Whether a flush of so many µs found a quiet device. The shortest one of the device is remembered."""
        if not self.cuda:
            return True
        known = self.turns.page.quiet_us
        if not known or flush_us < known:
            self.turns.page.quiet_us = flush_us
        return flush_us <= QUIET_FACTOR * known + QUIET_US

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the timing lock for work that is not timed, if possible on a device on which others' queued work has
        ended.
        """
        with self.turns.alone():
            self.is_quiet(OTHERS_DEADLINE_S)
            yield

    def end_who_stays_busy(self, candidate: WorkerHandle, where: Where) -> NoReturn:
        """Find out whether the candidate keeps the device busy, by killing its worker.

        Raises WorkerFailed where the device is quiet without it, Unmeasured where something else keeps it busy.
        """
        with self.turns.alone():
            candidate.kill(EndCause.REJECTED)
            if self.is_quiet(LEFT_DEADLINE_S):
                kept_busy = RuleBroken(Breach.BUSY_DEVICE)
                raise WorkerFailed(candidate, Outcome.REJECTED, kept_busy, where, candidate.log_tail)
        advice = "end what else uses the GPU, or take another by --device cuda:N"
        raise Unmeasured(Fault.BUSY_DEVICE, f"{place(where)}{STAYS_BUSY}; {advice}")

    def release(self) -> None:
        """Give back the memory that flushing needs, until the next flush."""
        self.scratch = None
