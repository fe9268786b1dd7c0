"""The file system that a worker sees, in its own mount namespace: a small part, mostly read-only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from kgbench.harness.sandbox import linux

NEWNS: Final = 0x00020000
"""unshare(2)'s flag for a mount namespace."""
_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE, _RDONLY = 2, 4, 8, 4096, 16384, 1 << 18, 1
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE, _ATTR_RDONLY = 442, -100, 0x8000, 1
_FILES: Final = "nr_inodes=64k"
"""Files, folders and links in each of these: one without content takes a kilobyte of the kernel's memory."""
_SIZE: Final = f"size=512m,{_FILES}"
"""Size of a worker's /tmp, and of its /dev/shm."""
_FOLDER_SIZE: Final = f"size=1g,{_FILES}"
"""Size of all that a worker may have in its own folder."""

IN_MEMORY: Final = ("/tmp", "/dev/shm")
"""Folders beside its own that are in memory for each worker, where mounts are private."""

GPU_FILES: Final = ("nvidia", "dri", "kfd", "infiniband")
"""How the names of those files and folders in /dev begin by which a GPU, or its memory, is reached."""

FEATURES: Final = ("hidden", "private", "read-only")
"""Protections that mounts give in addition to a /proc of its own; each works without the others."""


def enter(folder: str, features: Sequence[str], own_proc: bool, covered: Sequence[str], hidden: Sequence[str],
          kept: Sequence[str], own: Sequence[str] = (), uid: int | None = None) -> None:  # fmt: skip
    """Called in the worker. ``covered``: folders of which only ``kept`` stays; ``own``: what of them and of ``kept``
    can be written to, beside ``folder``. ``uid``: whose ``folder`` becomes as an empty one in memory, with a limit for
    all files together; None leaves it where it is. Raises OSError.
    """
    linux.libc_call("unshare", NEWNS)
    _mount("none", "/", None, _REC | _PRIVATE)
    if uid is not None and "private" in features:
        _mount("tmpfs", folder, "tmpfs", _NOSUID | _NODEV, f"{_FOLDER_SIZE},mode=700,uid={uid},gid={uid}")
    # Mounts of their own, so that they can stay writable where all else becomes read-only.
    for place in (folder, *(each for each in own if each not in covered)):
        _mount(place, place, None, _BIND)
    writable = [folder, *own]
    if "private" in features:
        for place in covered:
            if os.path.isdir(place) and _cover(place, [folder, *kept]) and place == "/tmp":
                writable.append(place)
    if "hidden" in features:
        for place in hidden:
            # A folder that Python itself lies in cannot be hidden from a Python worker.
            if os.path.isdir(place) and not _holds(place, kept):
                _mount("tmpfs", place, "tmpfs", _NOSUID | _NODEV | _RDONLY, "size=4k")
    if "read-only" in features:
        _set_attributes("/", _AT_RECURSIVE, _ATTR_RDONLY, 0)
        for place in writable:
            _set_attributes(place, 0, 0, _ATTR_RDONLY)
    if "private" in features and os.path.isdir("/dev/shm"):
        _mount("tmpfs", "/dev/shm", "tmpfs", _NOSUID | _NODEV, f"{_SIZE},mode=1777")
    if own_proc:
        # Without a /proc of its own PID namespace CUDA does not start.
        _mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    # The working directory still lies on the mount that was there before.
    os.chdir(folder)


def used_bytes(pid: int, folders: Sequence[str]) -> int:
    """Bytes that the files in these folders of a process take, removed ones that are still open too; 0 of one that is
    gone.

    Only mounts of its own count, each once.
    """
    found = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            place = f"/proc/{pid}/root{folder}"
            mount = os.stat(place).st_dev
            if mount != os.stat(folder).st_dev:
                state = os.statvfs(place)
                found[mount] = (state.f_blocks - state.f_bfree) * state.f_frsize
    return sum(found.values())


def shut(path: str) -> None:
    """Make a file or device empty from here on. Raises OSError."""
    _mount("/dev/null", path, None, _BIND)


def shut_gpus(devices: str = "/dev") -> None:
    """Make every GPU's device files empty from here on, for a process in a mount namespace of its own. Raises OSError.

    ``devices``: the folder that has them.
    """
    for name in os.listdir(devices):
        if name.startswith(GPU_FILES):
            place = f"{devices}/{name}"
            for path in [place] if not os.path.isdir(place) else [f"{place}/{each}" for each in os.listdir(place)]:
                if not os.path.isdir(path):
                    shut(path)


def freeze(path: str) -> None:
    """Make everything below a folder read-only. Raises OSError."""
    _mount(path, path, None, _BIND | _REC)
    _set_attributes(path, _AT_RECURSIVE, _ATTR_RDONLY, 0)


def rehearse(folder: str, features: Sequence[str], own_proc: bool, covered: Sequence[str], hidden: Sequence[str],
             kept: Sequence[str]) -> None:  # fmt: skip
    """Enter and check that Python works and the worker's folder is writable. Raises OSError."""
    enter(folder, features, own_proc, covered, hidden, kept)
    Path(folder, "written").write_text("")
    for path in kept:
        os.listdir(path)


def _cover(place: str, kept: Sequence[str]) -> bool:
    """Mount an empty folder over ``place`` in which only ``kept`` stands; False where that would hide Python."""
    below = sorted({path for path in kept if Path(path).is_relative_to(place)}, key=len)
    if place in below:
        return False
    below = [path for path in below if not any(path.startswith(other + "/") for other in below)]
    opened = [(path, os.open(path, os.O_PATH | os.O_CLOEXEC)) for path in below]
    _mount("tmpfs", place, "tmpfs", _NOSUID | _NODEV, f"{_SIZE},mode={'1777' if place == '/tmp' else '755'}")
    for path, fd in opened:
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            os.makedirs(path, exist_ok=True)
        else:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            Path(path).touch()
        _mount(f"/proc/self/fd/{fd}", path, None, _BIND | _REC)
        os.close(fd)
    return True


def _holds(folder: str, kept: Sequence[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for path in kept)


def _set_attributes(path: str, flags: int, add: int, remove: int) -> None:
    attributes = ctypes.create_string_buffer(struct.pack("=QQQQ", add, remove, 0, 0), 32)
    linux.system_call("mount_setattr", _MOUNT_SETATTR, _AT_FDCWD, path.encode(), flags, attributes, 32)


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind)]
    linux.libc_call("mount", *encoded, ctypes.c_ulong(flags), None if data is None else data.encode())
