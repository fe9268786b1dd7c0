"""One kgbench per GPU, whoever runs it: real processes, of two users where that can be had."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import stat
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from kgbench.core.errors import MachineError
from kgbench.harness.machine import gpu_lock
from kgbench.harness.machine.gpu_lock import GpuLock

UUID: Final = "GPU-00000000-test"
USERS: Final = (65534, 61234)
"""The second has no name."""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become two other users")


@dataclass
class Child:
    """A fork that does one thing, says what came of it, and lives on until it is ended."""

    pid: int
    answer: str

    def end(self, number: int = signal.SIGKILL) -> None:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, number)
            os.waitpid(self.pid, 0)


Start = Callable[..., Child]


@pytest.fixture
def start() -> Iterator[Start]:
    """``start(function, uid)``: what it returned or raised is the answer."""
    begun: list[Child] = []

    def begin(function: Callable[[], object], uid: int | None = None) -> Child:
        reader, writer = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of forks beside threads; nothing here uses any
            pid = os.fork()
        if pid == 0:
            os.close(reader)
            _live(function, uid, writer)
        os.close(writer)
        with open(reader) as file:
            child = Child(pid, file.read())
        begun.append(child)
        return child

    yield begin
    for child in begun:
        child.end()


def _live(function: Callable[[], object], uid: int | None, writer: int) -> None:
    try:
        if uid is not None:
            for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
                os.environ.pop(name, None)
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
        answer = str(function())
    except MachineError as error:
        answer = f"MachineError: {error}"
    except BaseException:
        answer = traceback.format_exc()
    os.write(writer, answer.encode())
    os.close(writer)
    time.sleep(60.0)
    os._exit(0)


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder as /tmp is, which other users reach: everybody may write, only owners may remove."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    for parent in folder.parents:
        if parent.stat().st_uid == os.geteuid() and len(parent.parts) > 2:
            parent.chmod(parent.stat().st_mode | 0o111)
    return folder


def take(folder: Path) -> Callable[[], bool]:
    return GpuLock(UUID, folder).try_take


def test_second_process_is_told_who_has_it_and_gets_it_after_kill_9(
    shared: Path, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = start(take(shared))
    assert holder.answer == "True"
    assert start(take(shared)).answer == "False"
    monkeypatch.setattr(gpu_lock, "POLL_S", 0.01)
    said: list[str] = []

    def say(words: str) -> None:
        said.append(words)
        holder.end()

    lock = GpuLock(UUID, shared)
    lock.wait(say)
    user = json.loads(lock.path.read_text())["user"]
    assert len(said) == 1
    assert f"the kgbench of user {user} (process {holder.pid}, since 2" in said[0]
    other = start(take(shared))
    assert other.answer == "False"
    other.end()  # as a fork it has the lock's descriptor, too
    lock.release()
    assert start(take(shared)).answer == "True"


@needs_root
@pytest.mark.parametrize("mask", [0o077, 0o777])
def test_two_users_exclude_each_other_whatever_the_umask(shared: Path, start: Start, mask: int) -> None:
    def first() -> bool:
        os.umask(mask)
        return GpuLock(UUID, shared).try_take()

    holder = start(first, USERS[0])
    assert holder.answer == "True"
    assert stat.S_IMODE((shared / f"kgbench-{UUID}.lock").stat().st_mode) == 0o666
    assert start(take(shared), USERS[1]).answer == "False"
    holder.end()
    # The file is the first one's still, in a folder with the sticky bit: opening it to create would be refused.
    second = start(take(shared), USERS[1])
    assert second.answer == "True"
    assert start(take(shared), USERS[0]).answer == "False"
    assert f"the kgbench of user {USERS[1]} (process {second.pid}" in GpuLock(UUID, shared).holder()


def test_file_is_not_opened_to_create_once_it_is_there(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = GpuLock(UUID, shared)
    assert first.try_take()
    first.release()
    flags: list[int] = []
    really = os.open

    def seen(path: Path, how: int, mode: int = 0o777) -> int:
        flags.append(how)
        return really(path, how, mode)

    monkeypatch.setattr(os, "open", seen)
    assert GpuLock(UUID, shared).try_take()
    assert flags
    assert not any(each & os.O_CREAT for each in flags)


def test_what_is_in_its_place_is_named(shared: Path) -> None:
    lock = GpuLock(UUID, shared)
    secret = shared / "secret"
    secret.write_text("kept")
    for make in (
        lambda: lock.path.symlink_to(secret),
        lambda: lock.path.symlink_to(shared / "nowhere"),
        lock.path.mkdir,
        lambda: os.mkfifo(lock.path),
    ):
        make()
        with pytest.raises(MachineError) as raised:
            lock.try_take()
        assert str(raised.value).startswith(f"{lock.path}: cannot lock the GPU: ")
        assert raised.value.exit_code == 3
        lock.path.rmdir() if stat.S_ISDIR(lock.path.lstat().st_mode) else lock.path.unlink()
    assert secret.read_text() == "kept"
    assert not (shared / "nowhere").exists()
    assert lock.try_take()


@needs_root
def test_file_of_another_user_that_is_closed_is_named(shared: Path, start: Start) -> None:
    path = shared / f"kgbench-{UUID}.lock"
    path.touch()
    path.chmod(0o600)
    answer = start(take(shared), USERS[0]).answer
    assert answer.startswith(f"MachineError: {path}: cannot lock the GPU: Permission denied"), answer
