"""Applies a plan to the processes of one worker."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from typing import Final

from kgbench.harness.sandbox import landlock, linux, mounts, seccomp
from kgbench.harness.sandbox.namespaces import unshare
from kgbench.harness.sandbox.plan import NOTHING, Plan

FIRST_UID: Final = 70_000
"""Lowest uid of a worker, where kgbench runs as root; no ordinary account lies there. Each worker gets its own."""
MAX_FILE_BYTES: Final = 512 << 20
"""Largest file, in bytes, that a worker may write."""
THREADS_PER_PROCESS: Final = 8
"""Threads allowed per process that a worker may start: kernel limits count threads."""


DESCRIPTORS: Final = 4096
"""Open files that a process of a worker may have: what waits in a socket is memory of nobody's."""


def enter_supervisor(chosen: Plan) -> None:
    """Called in the process that will fork the worker. Raises OSError."""
    linux.become_subreaper()
    # Mounts stay the supervisor's own: it needs a /proc that shows the worker's tree.
    unshare(tuple(name for name in chosen.namespaces if name != "mount"), chosen.user_namespace)


def enter_worker(
    chosen: Plan, folder: str, hidden: tuple[str, ...], uid: int | None, processes: int, without_gpu: bool = False
) -> None:
    """Called in the worker after the fork, before any code of a candidate. ``hidden``: empty for trusted workers.

    Raises OSError; with ``without_gpu`` also where the plan has no mounts, by which a GPU is shut.
    """
    linux.die_with_parent()
    kept = chosen.kept if hidden else (*chosen.kept, *chosen.modules)
    concealed = (*hidden, *chosen.hidden) if hidden else ()
    if "mount" in chosen.namespaces:
        own_proc = "pid" in chosen.namespaces
        owner = os.getuid() if uid is None else uid
        mounts.enter(folder, chosen.mounts, own_proc, chosen.covered, concealed, kept, uid=owner)
    if without_gpu:
        mounts.shut_gpus()
    rules = _landlock_rules(chosen, folder, concealed, kept) if chosen.landlock_abi else None
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    most = min(DESCRIPTORS, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, resource.getrlimit(resource.RLIMIT_NOFILE)[0]), most))
    resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
    resource.setrlimit(resource.RLIMIT_NICE, (0, 0))
    if uid is not None:
        resource.setrlimit(resource.RLIMIT_NPROC, (processes * THREADS_PER_PROCESS,) * 2)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        # Changing the uid clears the death signal.
        linux.die_with_parent()
    if chosen != NOTHING:
        # Root without a uid of its own could open disks and run before everybody else.
        linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    if rules is not None:
        rules.restrict()
    if chosen.filtered:
        seccomp.install(internet="net" in chosen.namespaces)


def _landlock_rules(chosen: Plan, folder: str, concealed: tuple[str, ...], kept: tuple[str, ...]) -> landlock.Rules:
    writable = [folder, "/dev/shm"]
    if "private" in chosen.mounts and "/tmp" in chosen.covered:
        writable.append("/tmp")
    readable: Iterator[str] | None = None
    if concealed and "hidden" not in chosen.mounts:
        readable = landlock.all_but([*chosen.covered, *concealed], kept)
    return landlock.Rules(chosen.landlock_abi, writable, readable)
