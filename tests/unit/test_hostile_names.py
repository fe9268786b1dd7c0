"""What a candidate may call itself, its files and its folders: any bytes, which the kernel repeats to the judge."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kgbench.core.files import remove_tree
from kgbench.harness.attribution import libraries, text_pages
from kgbench.harness.attribution.copies import BLOCK, is_as_given
from kgbench.harness.attribution.samples import mapping_at, mappings
from kgbench.harness.machine import processes

HELD: int = 32 << 20
"""Bytes that a process of these tests takes."""
MOST: int = HELD // 4 * 3
"""Of these, what is surely counted: a child shares what it inherited with this process, until it writes there."""
_SET_NAME = 15
"""PR_SET_NAME of prctl(2)."""


@contextmanager
def doing(work: Callable[[], object]) -> Iterator[int]:
    """A child that has done the work, and waits."""
    with beginning(work) as (pid, go_on):
        go_on()
        yield pid


@contextmanager
def beginning(work: Callable[[], object]) -> Iterator[tuple[int, Callable[[], None]]]:
    """A child, and what has it do the work."""
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        try:
            theirs.recv(1)
            kept = work()
            theirs.send(b"1")
            signal.pause()
            del kept
        finally:
            os._exit(1)

    def go_on() -> None:
        ours.send(b"1")
        assert ours.recv(1) == b"1"

    try:
        theirs.close()
        yield pid, go_on
    finally:
        ours.close()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def taken(work: Callable[[], object]) -> tuple[int, int]:
    """By how many bytes the work makes a process grow: what it holds, and what nobody shares with it."""
    with beginning(work) as (pid, go_on):
        before = processes.memory_bytes([pid])[0], processes.unshared_bytes([pid])
        go_on()
        return processes.memory_bytes([pid])[0] - before[0], processes.unshared_bytes([pid]) - before[1]


def shared() -> mmap.mmap:
    held = mmap.mmap(-1, HELD)
    for at in range(0, HELD, mmap.PAGESIZE):
        held[at] = 1
    return held


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\x0cVmPTE: b kB", b"a\x1cB: -1 kB", b"x 1 kB"])
def test_memory_counts_whatever_its_process_is_called(name: bytes) -> None:
    def work() -> object:
        ctypes.CDLL(None).prctl(_SET_NAME, name, 0, 0, 0)
        return shared()

    assert min(taken(work)) >= MOST


@pytest.mark.parametrize("name", [b"\xff", b"a\x1c/memfd:kgbench-x", b"memfd:kgbench-x"])
def test_memory_counts_whatever_files_are_mapped_beside_it(tmp_path: Path, name: bytes) -> None:
    path = os.path.join(os.fsencode(tmp_path), name)
    os.makedirs(os.path.dirname(path), exist_ok=True)

    def work() -> object:
        file = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        os.ftruncate(file, 4 * HELD)
        mapped = mmap.mmap(file, 4 * HELD)
        for at in range(0, HELD, mmap.PAGESIZE):
            mapped[at] = 1
        return shared(), mapped

    assert min(taken(work)) >= MOST


def test_the_referees_memory_counts_as_often_as_it_is_there() -> None:
    """It is nobody's else; to map it many times hides nothing."""
    buffer = os.memfd_create("kgbench-buffer")
    os.ftruncate(buffer, HELD)

    def work() -> object:
        first = mmap.mmap(buffer, HELD)
        for at in range(0, HELD, mmap.PAGESIZE):
            first[at] = 1
        return first

    assert taken(work)[1] < HELD - MOST
    assert taken(lambda: (shared(), work(), [mmap.mmap(buffer, HELD) for _ in range(9)]))[1] >= MOST
    os.close(buffer)


@pytest.mark.parametrize("name", ["a\x1c", "a\r", "a\x0b\x0b", "a\u2028\x85", "a\x1c1-f r-xp 0 0:0 0 "])
def test_a_files_name_is_no_line_of_its_own(tmp_path: Path, name: str) -> None:
    path = tmp_path / name / "lib-dynload" / "m.so\x1c"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"\xc3" * mmap.PAGESIZE)
    before = mappings(os.getpid())
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), mmap.PAGESIZE, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
        new = [each for each in mappings(os.getpid()) if each not in before and each[2].startswith(str(tmp_path))]
        assert [each[2] for each in new] == [str(path)]
        assert mapping_at(mappings(os.getpid()), new[0][0]) == new[0]
        assert str(path) in text_pages.programs(os.getpid())
        assert text_pages.ran(os.getpid()) is not None
        libraries.mapped(os.getppid())
        mapped.close()


def test_code_in_the_place_of_pythons_is_not_pythons(tmp_path: Path) -> None:
    """By its bytes: in the file that the referee sees by that path, or in the referee's own memory there."""
    code = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE)
    code[:] = bytes(range(256)) * (mmap.PAGESIZE // 256)
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    file, other = tmp_path / "libpython3.so", tmp_path / "libm.so"
    file.write_bytes(bytes(512) + bytes(range(256)) * 8)
    other.write_bytes(bytes(4096))

    def work() -> object:
        code[BLOCK] ^= 1
        return code

    with doing(work) as pid:
        assert is_as_given(pid, address, str(other), 0), "as it was forked"
        changed = address + BLOCK
        assert not is_as_given(pid, changed, str(file), 512 + BLOCK)
        code[:] = bytes(mmap.PAGESIZE)
        assert is_as_given(pid, address, str(file), 512)
        assert not is_as_given(pid, address, str(file), 511)
        assert not is_as_given(pid, address, str(other), 512)
        assert not is_as_given(pid, address, str(tmp_path / "not there.so"), 512)
    assert not is_as_given(pid, address, str(file), 512), "gone"


@pytest.mark.parametrize("depth", [3, 1100])
def test_a_folder_goes_however_deep_its_owner_made_it(tmp_path: Path, depth: int) -> None:
    """Python's own way calls itself once a level, and raises beyond a thousand: that ended the fork server."""
    top, before = tmp_path / "top", os.getcwd()
    try:
        top.mkdir()
        os.chdir(top)
        for _ in range(depth):
            Path("file").write_text("")
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(before)
    remove_tree(top)
    assert not top.exists()


def test_what_a_link_leads_to_stays(tmp_path: Path) -> None:
    kept, top = tmp_path / "kept", tmp_path / "top"
    (kept / "below").mkdir(parents=True)
    (kept / "file").write_text("")
    (top / "below").mkdir(parents=True)
    (top / "link").symlink_to(kept)
    (top / "below" / "link").symlink_to(kept)
    remove_tree(top)
    assert not top.exists()
    assert sorted(each.name for each in kept.iterdir()) == ["below", "file"]
    (tmp_path / "top").symlink_to(kept)
    remove_tree(top)
    assert (kept / "file").exists()
