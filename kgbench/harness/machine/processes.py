"""Finds and signals process trees. Reads the kernel's list of children; psutil where the kernel does not keep one."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TextIO

import psutil

WAIT_DEADLINE_S: Final = 0.03
"""Seconds to wait for a thread inside a call of the kernel that no signal ends; it stops when that returns."""
STOP_DEADLINE_S: Final = 2.0
"""Seconds to wait for threads that run: on a busy machine one has to get a processor before it can stop."""
TURN_WAIT_S: Final = 0.25
"""The same before a turn of another's: drivers take and give back memory inside the kernel for that long."""
RETURN_NS: Final = 1_000_000
"""Processor time in ns that threads which waited in the kernel, all together, may take to come back and stop."""
RETURN_TICKS: Final = 3
"""Clock ticks outside the kernel that such threads may have, all together: each is counted whole where it begins or
ends outside."""
BRIEF_NS: Final = 100_000
"""Processor time in ns below which a stopped thread that was scheduled again may have done nothing but stop."""
USUAL_DESCRIPTORS: Final = 256
"""Open files of a process that count as no memory."""
QUEUED_BYTES: Final = 256 << 10
"""Bytes that a socket, or a pipe, may hold by the kernel's usual limits."""
DEAD: Final = "ZXx"
"""States of threads that have ended."""
STILL: Final = "TtZXx"
"""States of threads that are stopped or have ended."""


def own_lines() -> TextIO:
    """A file for lines to the parent. Everything else that this process prints goes to standard error from here on."""
    lines = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return lines


def children(pid: int) -> list[int]:
    """Direct children of all threads of a process; empty when it is gone."""
    folder = f"/proc/{pid}/task"
    try:
        return [int(child) for task in os.listdir(folder) for child in _read(f"{folder}/{task}/children").split()]
    except FileNotFoundError:
        with contextlib.suppress(psutil.Error):
            return [child.pid for child in psutil.Process(pid).children()]
    except OSError:
        pass
    return []


def descendants(pid: int) -> list[int]:
    """Every live process below ``pid``, parents first."""
    found = children(pid)
    for child in found:
        found += [grandchild for grandchild in children(child) if grandchild not in found]
    return found


def signal_one(pid: int, number: int) -> None:
    """Signal a process that may be gone already."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def signal_tree(pid: int, number: int) -> None:
    """Signal every descendant of ``pid``; those that are gone already are passed over."""
    for child in descendants(pid):
        signal_one(child, number)


def stop_trees(
    roots: Sequence[int], seen: Iterable[int] = (), wait_s: float = WAIT_DEADLINE_S
) -> tuple[set[int], bool]:
    """Stop every descendant of these, also those that are forked meanwhile, and wait until they stand still.

    A tree that goes on forking is given up after STOP_DEADLINE_S; its tasks are then seen to run.

    Args:
        seen: descendants that were just found, which spares the first search.
        wait_s: seconds to wait for what is inside the kernel.

    Returns:
        The descendants, and whether any were forked meanwhile.
    """
    stopped: set[int] = set()
    rounds = 0
    until = time.monotonic() + STOP_DEADLINE_S
    new = set(seen) or below(roots)
    while new and time.monotonic() < until:
        for child in new:
            signal_one(child, signal.SIGSTOP)
        stopped |= new
        rounds += 1
        await_stopped(new, wait_s)
        new = below(roots) - stopped
    return stopped | new, rounds > 1


def below(roots: Sequence[int]) -> set[int]:
    """Every live process below one of these."""
    return {child for root in roots for child in descendants(root)}


def await_stopped(pids: set[int] | list[int], wait_s: float = WAIT_DEADLINE_S) -> None:
    """Wait until no thread of these processes runs any more: ``wait_s`` at most for what is inside the kernel,
    STOP_DEADLINE_S at most for what is not."""
    begun = time.monotonic()
    waiting = list(pids)
    while True:
        # Who stands still is not asked again: the others of a device have hundreds of threads.
        found = {pid: states for pid in waiting if (states := {*_states([pid])}.difference(STILL))}
        if not found:
            return
        passed = time.monotonic() - begun
        if passed > (wait_s if all(states == {"D"} for states in found.values()) else STOP_DEADLINE_S):
            return
        waiting = list(found)
        time.sleep(50e-6)


class Task(NamedTuple):
    """A thread at one moment."""

    state: str
    """The state letter of ``/proc/PID/stat``; empty where the process is gone."""
    scheduled: int
    """How often it was scheduled on a processor; 0 where the kernel does not count."""
    ran_ns: int = 0
    """Processor time so far, in ns; 0 where the kernel does not count."""
    user_ticks: int = 0
    """Processor time so far outside the kernel, in clock ticks."""
    is_ending: bool = False
    """The kernel ends it: it runs no code of its own any more, but its driver may work for a second."""

    @property
    def is_still(self) -> bool:
        """Stopped, or dead."""
        return self.state in STILL

    @property
    def is_waiting(self) -> bool:
        """Inside a call of the kernel that no signal ends; it stops before it runs code of its own again."""
        return self.state == "D"


class Ran(NamedTuple):
    """A thread that ran while it was to stand still."""

    key: tuple[int, int]
    """Process and thread id."""
    before: Task | None
    """None: there was no such thread."""
    after: Task

    @property
    def is_brief(self) -> bool:
        """It stands still again after less than BRIEF_NS. A preemptive kernel shows a thread as stopped that has yet to
        leave its processor, and may interrupt it there: that one is scheduled once more, to leave.
        """
        if self.before is None or not self.before.ran_ns or not self.after.is_still:
            return False
        return self.after.ran_ns - self.before.ran_ns < BRIEF_NS


def tasks_of(pids: Iterable[int]) -> dict[tuple[int, int], Task]:
    """All threads of these processes, by process and thread id."""
    return {(pid, tid): _task(f"/proc/{pid}/task/{tid}") for pid, tid in threads(pids)}


def threads(pids: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Process and thread ids of all threads of these processes."""
    for pid in pids:
        with contextlib.suppress(OSError):
            yield from ((pid, int(tid)) for tid in os.listdir(f"/proc/{pid}/task"))


def woken(before: Mapping[tuple[int, int], Task], after: Mapping[tuple[int, int], Task]) -> bool:
    """Whether a stopped thread has run since, one did not stop, one is ending, or there is a new thread.

    A thread that was waiting in the kernel may have returned from there and been stopped then, which takes RETURN_NS at
    most. Dead threads are ignored.
    """
    ran, late = _since(before, after)
    if any(task.is_ending and task.state not in DEAD for task in after.values()):
        return True
    if ran or not all(each.is_still or each.is_waiting for pair in late for each in pair):
        return True
    return sum(task.ran_ns - then.ran_ns for then, task in late) > RETURN_NS


def ran_own_code(before: Mapping[tuple[int, int], Task], after: Mapping[tuple[int, int], Task]) -> list[Ran]:
    """The stopped threads that have run since, and the new ones.

    What the kernel did for a thread before it stopped is no work of its own: a driver that takes or gives back memory
    is busy for longer than anybody waits, whether the thread sleeps meanwhile or not.
    """
    return _since(before, after)[0]


def used_own_time(before: Mapping[tuple[int, int], Task], after: Mapping[tuple[int, int], Task]) -> bool:
    """Whether threads that had not stopped yet have more time outside the kernel than coming back takes.

    A hint alone: the kernel divides a thread's time by samples, and after a second inside the driver of a GPU it was
    seen to count some of that as outside.
    """
    return sum(task.user_ticks - then.user_ticks for then, task in _since(before, after)[1]) > RETURN_TICKS


def _since(
    before: Mapping[tuple[int, int], Task], after: Mapping[tuple[int, int], Task]
) -> tuple[list[Ran], list[tuple[Task, Task]]]:
    """Threads that were stopped and ran, or are new; and those that had not stopped yet, then and now. Without those
    that end.
    """
    ran, late = [], []
    for key, task in after.items():
        if task.state in DEAD or task.is_ending:
            continue
        then = before.get(key)
        if then is None or (then.is_still and (task.scheduled != then.scheduled or not task.is_still)):
            ran.append(Ran(key, then, task))
        elif not then.is_still:
            late.append((then, task))
    return ran, late


def ran_us(before: Mapping[tuple[int, int], Task], after: Mapping[tuple[int, int], Task]) -> float | None:
    """Processor time in µs that threads used in between, new threads all of theirs.

    None where it is not known: the kernel does not count, or threads have ended and their time with them.
    """
    if not any(task.ran_ns for task in after.values()) or before.keys() - after.keys():
        return None
    return sum(task.ran_ns - before.get(key, Task("", 0)).ran_ns for key, task in after.items()) / 1e3


def _task(folder: str) -> Task:
    # The state first: of a thread that stops in between, the counts would be those from before it came back to stop.
    fields = _stat(folder)
    ran_ns = scheduled = 0
    with contextlib.suppress(OSError, IndexError, ValueError):
        counts = _read(f"{folder}/schedstat").split()
        ran_ns, scheduled = int(counts[0]), int(counts[2])
    is_ending = bool(int(fields[_FLAGS]) & _EXITING)
    return Task(fields[0].decode(), scheduled, ran_ns, int(fields[_UTIME]), is_ending)


def _states(pids: Iterable[int]) -> Iterator[str]:
    for pid, tid in threads(pids):
        yield _stat(f"/proc/{pid}/task/{tid}")[0].decode()


_FLAGS: Final = 6
"""Place of the kernel's flags of a thread among the fields of ``/proc/PID/stat``, from the state on."""
_EXITING: Final = 0x4
"""The flag of a thread that the kernel ends, PF_EXITING in Linux's ``include/linux/sched.h``."""
_UTIME: Final = 11
"""Place of the time outside the kernel among the fields of ``/proc/PID/stat``, from the state on."""
_GONE: Final = [b"X", *[b"0"] * _UTIME]
"""The fields of a thread that is gone."""


def _stat(folder: str) -> list[bytes]:
    """The fields of a thread's ``stat`` from its state on."""
    try:
        return _read(f"{folder}/stat").rpartition(b")")[2].split(None, _UTIME + 1) or _GONE
    except OSError:
        return _GONE


def _read(path: str) -> bytes:
    """A file of the kernel's, in a third of the time that a file object takes."""
    fd = os.open(path, os.O_RDONLY)
    try:
        text = more = os.read(fd, 4096)
        # What is longer than a page comes page by page, cut between two entries.
        while len(more) > 2048:
            more = os.read(fd, 4096)
            text += more
        return text
    finally:
        os.close(fd)


def worked_us(pids: Iterable[int]) -> float:
    """Processor time of all threads of these processes so far, in µs; processes without an account count as 0."""
    total = 0
    for pid, tid in threads(pids):
        with contextlib.suppress(OSError, ValueError, IndexError):
            total += int(Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[0])
    return total / 1e3


def unshared_bytes(pids: list[int]) -> int:
    """Bytes these processes need together, shared pages counted once, without what the referee shares with a worker.

    Slow: the kernel walks their maps.
    """
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError):
            sizes = _kilobytes(_whole(f"/proc/{pid}/smaps_rollup"))
            shared = sizes.get(b"Pss_Shmem:", 0) - _referees_bytes(pid)
            total += sizes.get(b"Pss_Anon:", 0) + max(0, shared)
            total += sum(_sizes(pid).get(name, 0) for name in _UNMAPPED) + queued_bytes(pid)
    return total


def _referees_bytes(pid: int) -> int:
    """Bytes that a process has of the referee's memory: what each of its mappings takes, not how long it is."""
    total, is_referees = 0, False
    for line in _whole(f"/proc/{pid}/smaps").split(b"\n"):
        fields = line.split(None, 5)
        if line[:1].isupper():
            total += int(fields[1]) * 1024 if is_referees and fields[0] == b"Pss:" else 0
        else:
            # A file on a disk has another path: its name alone says nothing.
            is_referees = len(fields) == 6 and fields[5].startswith(b"/memfd:kgbench-")
    return total


def written_bytes(pids: Iterable[int]) -> int:
    """Bytes that these processes, and those of their children that have ended, have had written to disks."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, StopIteration):
            lines = Path(f"/proc/{pid}/io").read_text().splitlines()
            total += int(next(line for line in lines if line.startswith("write_bytes:")).split()[1])
    return total


def peak_bytes(pid: int) -> int:
    """The largest resident size a process has had; 0 when it is gone."""
    with contextlib.suppress(OSError, StopIteration):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) * 1024
    return 0


_UNMAPPED: Final = (b"VmPTE:", b"HugetlbPages:")
"""What a process holds and no resident size counts: page tables, of which a mapping of nothing can need gigabytes, and
huge pages."""
_OWN: Final = (b"RssAnon:", b"RssShmem:", *_UNMAPPED)
"""Parts, as /proc/PID/status names them, of what a process holds beside files."""


def memory_bytes(pids: list[int]) -> tuple[int, int]:
    """Bytes that these processes hold beside files, pages shared among them as often, and the largest resident size."""
    own = resident = 0
    for pid in pids:
        with contextlib.suppress(OSError, ValueError, IndexError):
            sizes = _sizes(pid)
            own += sum(sizes.get(name, 0) for name in _OWN) + queued_bytes(pid)
            resident = max(resident, sizes.get(b"VmRSS:", 0))
    return own, resident


def queued_bytes(pid: int) -> int:
    """Bytes that may wait in a process's sockets and pipes, which nobody's size counts: by how many files it has open.

    Those that any program has are not counted. Raises OSError.
    """
    return max(0, len(os.listdir(f"/proc/{pid}/fd")) - USUAL_DESCRIPTORS) * QUEUED_BYTES


def _sizes(pid: int) -> dict[bytes, int]:
    """Bytes of a process by the names of /proc/PID/status. Raises OSError."""
    return _kilobytes(_whole(f"/proc/{pid}/status"))


def _kilobytes(text: bytes) -> dict[bytes, int]:
    """Bytes by name, from the lines that give a number of kilobytes.

    A process has any bytes but a line feed in its name.
    """
    lines = (line.split() for line in text.split(b"\n"))
    return {line[0]: int(line[1]) * 1024 for line in lines if len(line) == 3 and line[2] == b"kB" and line[1].isdigit()}


def lines_of(path: str) -> list[str]:
    """Lines of a file of the kernel's about a process, whose names in it may hold what else ends a line. Raises
    OSError.
    """
    return _whole(path).decode(errors="replace").split("\n")


def _whole(path: str) -> bytes:
    """A file of the kernel's of any length. Raises OSError."""
    with open(path, "rb") as file:
        return file.read()
