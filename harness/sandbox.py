"""What a worker is shut off from, by Linux means, and a true account of what could be had.

``plan`` finds out once, in throw-away children, what this machine allows. ``enter_keeper`` and ``enter_worker``
apply it. Everything is by ctypes on libc: these are system calls, and no package covers them all.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import stat
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

_NEWNS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = 0x00020000, 0x08000000, 0x10000000, 0x20000000, 0x40000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_PRIVATE, _MS_RDONLY = 2, 4, 8, 16384, 1 << 18, 1
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER = 1, 38, 36
FIRST_UID: Final = 70_000
"""Workers of a root-run kgbench get a uid above this, one each; no ordinary account lives there."""
MAX_FILE_BYTES: Final = 512 << 20

_ATTEMPTS: Final = (
    ("mount", "pid", "net", "ipc"),
    ("mount", "net", "ipc"),
    ("net", "ipc"),
    ("net",),
    (),
)
_FLAGS: Final = {"mount": _NEWNS, "pid": _NEWPID, "net": _NEWNET, "ipc": _NEWIPC}


@dataclass(frozen=True)
class Plan:
    """What workers on this machine get."""

    namespaces: tuple[str, ...]
    user_namespace: bool
    own_uid: bool
    reasons: dict[str, str]
    """Per thing that could not be had, why."""

    def states(self) -> dict[str, str]:
        """One line per protection, for people; what is open is in capitals."""
        has = set(self.namespaces)
        reason = self.reasons.get("namespaces", "")
        lost = f": {reason}" if reason else ""
        return {
            "network": "none" if "net" in has else f"OPEN{lost}",
            "processes": "own PID namespace" if "pid" in has else f"VISIBLE, killed as a tree{lost}",
            "files": "problems, baselines and results hidden" if "mount" in has else f"VISIBLE{lost}",
            "ipc": "own" if "ipc" in has else f"SHARED{lost}",
            "user": "own uid per worker" if self.own_uid else f"SHARED: {self.reasons.get('uid', '')}",
            "privileges": "no new ones",
            "system calls": "NOT FILTERED: not built yet",
            "memory": "watched, killed above the limit",
        }

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Plan:
        return cls(**{**data, "namespaces": tuple(data["namespaces"])})


def plan(readable: tuple[str, ...]) -> Plan:
    """Try what this machine allows. ``readable``: folders that a worker under another uid must be able to read."""
    reasons: dict[str, str] = {}
    user_namespace = os.geteuid() != 0
    for names in _ATTEMPTS:
        error = _try_in_child(lambda names=names: _rehearse(names, user_namespace))  # type: ignore[misc]
        if error is None:
            break
        reasons.setdefault("namespaces", error)
    own_uid = False
    if os.geteuid() != 0:
        reasons["uid"] = "needs root; run as root or in a container to give each worker its own"
    elif closed := next((folder for folder in readable if not _open_to_all(folder)), None):
        reasons["uid"] = f"{closed} is not readable for other users, and Python or torch lie below it"
    else:
        own_uid = True
    return Plan(names, user_namespace and bool(names), own_uid, reasons)


def enter_keeper(chosen: Plan) -> None:
    """Called in the process that will fork the worker. Raises OSError."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # Mounts stay the keeper's own: it needs a /proc that shows the worker's tree.
    _unshare(tuple(name for name in chosen.namespaces if name != "mount"), chosen.user_namespace)


def enter_worker(chosen: Plan, hidden: tuple[str, ...], uid: int | None) -> None:
    """Called in the worker after the fork, before any code of a candidate. Raises OSError."""
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if "mount" in chosen.namespaces:
        _libc_call("unshare", _NEWNS)
        _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
        if "pid" in chosen.namespaces:
            # Without a /proc of its own namespace CUDA does not start.
            _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
        for folder in hidden:
            # A folder that Python itself lies in cannot be hidden from a Python worker.
            if os.path.isdir(folder) and not _holds_python(folder):
                _mount("tmpfs", folder, "tmpfs", _MS_NOSUID | _MS_NODEV | _MS_RDONLY, "size=4k")
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        # Changing the uid clears the death signal.
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def become_subreaper() -> None:
    """Orphans among this process's descendants become its children instead of init's."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent() -> None:
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def prctl(option: int, value: int) -> None:
    _libc_call("prctl", option, value, 0, 0, 0)


def _rehearse(names: tuple[str, ...], user_namespace: bool) -> None:
    _unshare(names, user_namespace and bool(names))
    if "pid" in names:
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                _rehearse_mounts()
                code = 0
            finally:
                os._exit(code)
        if os.waitpid(pid, 0)[1] != 0:
            raise OSError("mounting /proc in a PID namespace was refused")
    elif "mount" in names:
        _mount("none", "/", None, _MS_REC | _MS_PRIVATE)


def _rehearse_mounts() -> None:
    _mount("none", "/", None, _MS_REC | _MS_PRIVATE)
    _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)


def _unshare(names: tuple[str, ...], user_namespace: bool) -> None:
    flags = 0
    for name in names:
        flags |= _FLAGS[name]
    if not flags:
        return
    uid, gid = os.getuid(), os.getgid()
    _libc_call("unshare", flags | (_NEWUSER if user_namespace else 0))
    if user_namespace:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind)]
    _libc_call("mount", *encoded, ctypes.c_ulong(flags), None if data is None else data.encode())


def _libc_call(name: str, *arguments: Any) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name} refused ({os.strerror(code)})")


def _try_in_child(action: Callable[[], None]) -> str | None:
    """Run in a fork; None when it worked, else the error's words."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        words = ""
        try:
            action()
        except OSError as error:
            words = error.strerror or str(error)
        os.write(write_end, words.encode()[:500])
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        words = pipe.read().decode()
    os.waitpid(pid, 0)
    return words or None


def _open_to_all(folder: str) -> bool:
    path = Path(folder).resolve()
    return all(part.stat().st_mode & stat.S_IXOTH for part in (path, *path.parents))


def _holds_python(folder: str) -> bool:
    inside = (Path(path).resolve() for path in (sys.prefix, sys.base_prefix))
    return any(path.is_relative_to(Path(folder).resolve()) for path in inside)


def readable_folders() -> tuple[str, ...]:
    """Folders of this interpreter's Python and packages."""
    import torch

    return tuple({sys.prefix, sys.base_prefix, str(Path(torch.__file__).parent)})
