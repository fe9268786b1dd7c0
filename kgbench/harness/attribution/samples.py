"""Samples of the instruction pointers of a candidate's threads, taken by the Linux kernel and read from outside.

The candidate's process takes no part, and cannot tell a sampled window from a timed one. Where the system refuses
samples (``perf_event_open``), nothing is found.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import re
import resource
import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from kgbench.harness.attribution.code import Code, owner_of
from kgbench.harness.attribution.copies import BLOCK, is_as_given
from kgbench.harness.machine import cores, processes
from kgbench.harness.sandbox import linux

RATE_HZ: Final = 10_000
"""Samples a second of each thread while it runs."""
CALL_RATE_HZ: Final = 40_000
"""The same in single calls, which are short and are not timed, as far as the kernel allows so many."""
_CALL: Final = {"x86_64": 298, "aarch64": 241}
"""Number of perf_event_open(2)."""
_SOFTWARE, _TASK_CLOCK = 1, 1
_IP, _TID = 1, 2
_DISABLED, _INHERIT, _NO_KERNEL, _NO_HYPERVISOR, _BY_RATE = 1, 1 << 1, 1 << 5, 1 << 6, 1 << 10
_CLOSE_ON_EXEC: Final = 8
"""Flag PERF_FLAG_FD_CLOEXEC of perf_event_open(2)."""
_ENABLE, _DISABLE, _SET_OUTPUT = 0x2400, 0x2401, 0x2405
_ATTRIBUTES_BYTES: Final = 112
"""Size of struct perf_event_attr, version 5."""
_BUFFER_PAGES: Final = 16
"""Pages of a processor's ring buffer, beside one with its head: some 2700 samples."""
MOST_TASKS: Final = 1024
"""Threads that are sampled at most; each takes a descriptor per processor."""
SPARE_DESCRIPTORS: Final = 256
"""Descriptors that a referee needs beside these."""
_HEAD_AT: Final = 1024
"""Offset in the first page of the count of bytes written."""
_SAMPLE: Final = 9
"""Type of the records that are samples."""
PLACE: Final = 16 << 10
"""Bytes of code that count as one place: of a function or few."""
GONE: Final = "code that was gone afterwards"
"""What stands for a file where code ran at an address at which nothing is any more."""
REPLACED: Final = "code in the place of Python's or the system's"
"""What stands for a file of Python's or the system's where other code ran than that file has."""
CHECKED: Final = ("Python's", "the system's")
"""Owners whose code needs no account, so that it must be theirs indeed."""
Mapping = tuple[int, int, str, int]
"""First address, end and file of something that is mapped, and where in the file it begins, in bytes."""
Mappings = Sequence[Mapping]
"""What a process has mapped, in the order of addresses."""
_MAPPING: Final = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S\Sx\S ([0-9a-f]+) \S+ \S+\s*(.*)$")


class Sampler:
    """Samples all threads of a supervisor's processes, on every processor, between ``start`` and ``stop``."""

    def __init__(self, supervisor: int, before: Mappings = (), rate_hz: int = RATE_HZ) -> None:
        """``before``: what its worker had mapped when it had not seen its candidate. Raises OSError where the kernel
        refuses.
        """
        self.pids = processes.descendants(supervisor)
        self.before = before
        self.rate_hz = min(rate_hz, _most_hz())
        self.at_start: dict[int, Mappings] = {}
        """By process; whose code ran is not for the process to change afterwards."""
        self.buffers: list[mmap.mmap] = []
        self.fds: list[int] = []
        self.outputs: dict[int, int] = {}
        """The event whose buffer takes all samples of a processor."""
        tasks = processes.tasks_of(self.pids)
        try:
            if len(tasks) > MOST_TASKS:
                raise OSError(errno.EMFILE, f"{len(tasks)} threads are more than {MOST_TASKS}")
            _allow_descriptors(len(tasks) * (os.cpu_count() or 1))
            processors = sorted(cores.usable(tid for _, tid in tasks))
            for _, tid in tasks:
                for processor in processors:
                    self._open(tid, processor)
        except BaseException:
            self.close()
            raise

    def _open(self, tid: int, processor: int) -> None:
        attributes = bytearray(_ATTRIBUTES_BYTES)
        flags = _DISABLED | _INHERIT | _NO_KERNEL | _NO_HYPERVISOR | _BY_RATE
        what = (_SOFTWARE, _ATTRIBUTES_BYTES, _TASK_CLOCK, self.rate_hz, _IP | _TID, 0, flags)
        struct.pack_into("<IIQQQQQ", attributes, 0, *what)
        passed = (ctypes.c_char * _ATTRIBUTES_BYTES).from_buffer(attributes)
        number = _CALL.get(linux.machine())
        if number is None:
            raise OSError(0, "no number of perf_event_open is known for this machine")
        with contextlib.suppress(ProcessLookupError):  # a thread may have ended
            fd = linux.system_call("perf_event_open", number, passed, tid, processor, -1, _CLOSE_ON_EXEC)
            self.fds.append(fd)
            if processor in self.outputs:
                fcntl.ioctl(fd, _SET_OUTPUT, self.outputs[processor])
            else:
                self.buffers.append(mmap.mmap(fd, (1 + _BUFFER_PAGES) * mmap.PAGESIZE))
                self.outputs[processor] = fd

    def start(self) -> None:
        self.at_start = {pid: mappings(pid) for pid in self.pids}
        for fd in self.fds:
            fcntl.ioctl(fd, _ENABLE, 0)

    def stop(self) -> None:
        for fd in self.fds:
            fcntl.ioctl(fd, _DISABLE, 0)

    def found(self, calls: int) -> Code:
        """What ran so far, in so many calls. A file's name is empty for code that no file has.

        Where a library was before the candidate came, or when the sampling began, its code ran, whatever is there now.
        """
        by_process: dict[int, list[int]] = {}
        for buffer in self.buffers:
            for pid, address in _samples(buffer):
                by_process.setdefault(pid, []).append(address)
        code = Code(calls=calls, cpu_us=1e6 / self.rate_hz * sum(map(len, by_process.values())))
        for pid, addresses in by_process.items():
            earlier, now = (self.before, self.at_start.get(pid, ())), mappings(pid)
            right: dict[int, bool] = {}
            for address in addresses:
                found = [mapping for each in earlier if (mapping := mapping_at(each, address)) is not None]
                mapping = next((each for each in found if each[2].startswith("/")), None) or mapping_at(now, address)
                file = GONE if mapping is None else mapping[2]
                if mapping is not None and now and owner_of(file) in CHECKED:
                    block = address // BLOCK * BLOCK
                    if block not in right:
                        right[block] = is_as_given(pid, block, file, mapping[3] + block - mapping[0])
                    file = file if right[block] else REPLACED
                code.files[file] += 1
                if owner_of(file) == "own":
                    code.spots[pid, address] += 1
                else:
                    code.places[file, address // PLACE] += 1
        return code

    def close(self) -> None:
        for buffer in self.buffers:
            buffer.close()
        for fd in self.fds:
            os.close(fd)
        self.buffers, self.fds = [], []


def _allow_descriptors(count: int) -> None:
    """Raise this process's own limit, as far as it may be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(count + SPARE_DESCRIPTORS, hard) if hard != resource.RLIM_INFINITY else count + SPARE_DESCRIPTORS
    if soft != resource.RLIM_INFINITY and wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _most_hz() -> int:
    """The rate that the kernel allows."""
    with contextlib.suppress(OSError, ValueError):
        return max(int(Path("/proc/sys/kernel/perf_event_max_sample_rate").read_text()), 1)
    return RATE_HZ


def can_sample(supervisor: int) -> bool:
    """Whether the kernel gives samples of a supervisor's processes."""
    try:
        Sampler(supervisor).close()
    except OSError:
        return False
    return True


def _samples(buffer: mmap.mmap) -> Iterator[tuple[int, int]]:
    """Process and address of each sample that is still in a ring buffer."""
    (written,) = struct.unpack_from("<Q", buffer, _HEAD_AT)
    # What overflows is lost: the kernel writes no further than a tail that nobody moves.
    at, end = mmap.PAGESIZE, mmap.PAGESIZE + min(written, _BUFFER_PAGES * mmap.PAGESIZE)
    while at + 24 <= end:
        kind, _, size = struct.unpack_from("<IHH", buffer, at)
        if size == 0:
            return
        if kind == _SAMPLE:
            address, pid = struct.unpack_from("<QI", buffer, at + 8)
            yield pid, address
        at += size


def mappings(pid: int) -> Mappings:
    """What a process has mapped to run; nothing of one that is gone."""
    found = []
    with contextlib.suppress(OSError):
        for line in processes.lines_of(f"/proc/{pid}/maps"):
            if mapping := _MAPPING.match(line):
                first, end, begin = (int(mapping[number], 16) for number in (1, 2, 3))
                found.append((first, end, mapping[4].removesuffix(" (deleted)"), begin))
    return found


def mapping_at(mapped: Mappings, address: int) -> Mapping | None:
    """What lies at an address, its file empty where it has none; None where nothing is mapped to run."""
    index = bisect_right(mapped, address, key=lambda mapping: mapping[0]) - 1
    return mapped[index] if index >= 0 and address < mapped[index][1] else None
