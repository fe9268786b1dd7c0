"""The page of memory that all referees of a device share: who they are, and what each says of itself.

Words of 64 bits: a header of the whole device, then as many for each referee. Bytes of the page's file are locks, which
end with the process that holds them.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from kgbench.harness.machine import processes

MAX_REFEREES: Final = 64
"""Referees of one device at most."""
SUPERVISORS: Final = 6
"""Workers of one referee at most."""
_WORDS: Final = 16
"""64-bit words per referee: its pid, whether it is starting a worker, nanoseconds stopped, since when it is stopped now
(0 while it runs), then its supervisors."""
PID, STARTING, STOPPED_NS, SINCE_NS, FIRST_SUPERVISOR = 0, 1, 2, 3, 4
HELD, TICKED, RESERVED, WOKE, GREW = 10, 11, 12, 13, 14
"""Words per referee behind its supervisors: which of them, a bit each, it keeps stopped itself; in how many turns one
of its workers seemed to run, by clock ticks or for a moment; bytes of the device's memory that it reserved; in how many
turns a thread of its workers ran that had been stopped, and in how many there was a new one."""
_HEADER: Final = 8
"""64-bit words before the first referee's: sums and least times of the whole device."""
TURNS_NS, QUIET_NS, STOPPING_NS, EMPTY_NS = 0, 1, 2, 3
TIMING_BYTE, ROOM_BYTE = 0, 1
"""Bytes of the page's file whose locks are the timing lock, and the place at the head of those who wait for memory."""


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
    def locked(self, byte: int = TIMING_BYTE) -> Iterator[None]:
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
        return sum(self.slot(referee)[RESERVED] for referee in range(MAX_REFEREES))

    def slot(self, referee: int) -> memoryview:
        """The 64-bit words of one referee, 0 to MAX_REFEREES - 1."""
        begin = _HEADER + referee * _WORDS
        return self.words[begin : begin + _WORDS]

    def clear(self, referee: int) -> None:
        """Forget a referee that has ended."""
        words = self.slot(referee)
        words[PID] = words[STARTING] = words[SINCE_NS] = words[HELD] = words[RESERVED] = 0
        words[TICKED] = words[WOKE] = words[GREW] = 0
        for index in range(SUPERVISORS):
            words[FIRST_SUPERVISOR + index] = 0

    def pid(self, referee: int) -> int:
        return self.slot(referee)[PID]

    def supervisors(self, referee: int) -> list[int]:
        return [pid for pid in self.all_supervisors(referee) if pid]

    def all_supervisors(self, referee: int) -> list[int]:
        """Process ids of the supervisors by place, 0 where there is none. A referee's first is its library's, unless
        that died.
        """
        return list(self.slot(referee)[FIRST_SUPERVISOR : FIRST_SUPERVISOR + SUPERVISORS])

    def set_going(self) -> None:
        """Continue all processes that any referee stopped for a turn. Only for the holder of the lock."""
        for referee in range(MAX_REFEREES):
            if self.slot(referee)[SINCE_NS]:
                self.go_on(referee)

    def stopped(self, referee: int) -> None:
        """Record that a referee is stopped from now on."""
        self.slot(referee)[SINCE_NS] = time.monotonic_ns()

    def go_on(self, referee: int) -> None:
        """Continue a referee with its workers; the time that it was stopped is added up."""
        words = self.slot(referee)
        if words[SINCE_NS]:
            words[STOPPED_NS] += time.monotonic_ns() - words[SINCE_NS]
            words[SINCE_NS] = 0
        for index, supervisor in enumerate(self.all_supervisors(referee)):
            if supervisor and not words[HELD] >> index & 1:
                processes.signal_tree(supervisor, signal.SIGCONT)
        self.signal(referee, signal.SIGCONT)

    def signal(self, referee: int, number: int) -> None:
        """Signal a referee's own process, if there is one."""
        if pid := self.pid(referee):  # 0 would mean this process and all of its group
            processes.signal_one(pid, number)

    @property
    def timed_s(self) -> float:
        """Seconds for which the lock has been held so far, by all referees of the device together."""
        return self.words[TURNS_NS] / 1e9

    @property
    def stopping_s(self) -> float:
        """Of ``timed_s``, what it took until everybody else stood still."""
        return self.words[STOPPING_NS] / 1e9

    @property
    def quiet_us(self) -> float:
        """The shortest flush of the cache seen on this device, in µs; 0 before the first."""
        return self.words[QUIET_NS] / 1e3

    @quiet_us.setter
    def quiet_us(self, value: float) -> None:
        self.words[QUIET_NS] = int(value * 1e3)

    @property
    def empty_us(self) -> float:
        """The shortest window without calls seen on this device, in µs; 0 before the first. On a CPU alone."""
        return self.words[EMPTY_NS] / 1e3

    @empty_us.setter
    def empty_us(self, value: float) -> None:
        self.words[EMPTY_NS] = int(value * 1e3)


def _page_bytes() -> int:
    size = 8 * (_HEADER + MAX_REFEREES * _WORDS)
    return -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
