"""New namespaces for a process, by name."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from kgbench.harness.sandbox import linux, mounts

NAMESPACES: Final = {"mount": mounts.NEWNS, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x08000000}
"""Flags of unshare(2) for each namespace that a worker may get."""
_NEWUSER: Final = 0x10000000
"""unshare(2)'s flag for a user namespace."""


def below(fork: bool, action: Callable[[], None]) -> None:
    """In a child where the first of a PID namespace is needed. Raises OSError."""
    if not fork:
        return action()
    error = linux.try_in_child(action)
    if error is not None:
        raise OSError(0, error)


def unshare(names: tuple[str, ...], user_namespace: bool) -> None:
    """New namespaces by the names in ``NAMESPACES``, in a user namespace of their own where asked. Raises OSError."""
    flags = 0
    for name in names:
        flags |= NAMESPACES[name]
    if not flags:
        return
    uid, gid = os.getuid(), os.getgid()
    linux.libc_call("unshare", flags | (_NEWUSER if user_namespace else 0))
    if user_namespace:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
