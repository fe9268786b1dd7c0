"""Finds out which protections this machine allows, each tried by itself in a throw-away child."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kgbench.harness.sandbox import cgroup, landlock, linux, mounts, seccomp, surroundings
from kgbench.harness.sandbox.enter import FIRST_UID, enter_supervisor, enter_worker
from kgbench.harness.sandbox.namespaces import below, unshare
from kgbench.harness.sandbox.plan import Plan

_ATTEMPTS: Final = (
    ("mount", "pid", "net", "ipc"),
    ("mount", "net", "ipc"),
    ("net", "ipc"),
    ("net",),
    (),
)
"""Sets of namespaces in the order in which they are tried; the first that works is used."""


def probe() -> Plan:
    """Find out what this machine allows, each protection in a throw-away child."""
    reasons: dict[str, str] = {}
    user_namespace = os.geteuid() != 0
    for names in _ATTEMPTS:
        error = linux.try_in_child(lambda names=names: _rehearse_namespaces(names, user_namespace))  # type: ignore[misc]
        if error is None:
            break
        reasons.setdefault("namespaces", error)
    own_uid = False
    if os.geteuid() != 0:
        reasons["uid"] = "needs root; run as root or in a container to give each worker its own"
    elif closed := surroundings.closed_to_others():
        reasons["uid"] = f"{closed} is not readable for other users, and Python or torch lie below it"
    else:
        own_uid = True
    chosen = Plan(
        names,
        user_namespace and bool(names),
        own_uid,
        covered=surroundings.covered(),
        kept=surroundings.python(),
        modules=surroundings.modules(),
        hidden=surroundings.hidden(),
        reasons=reasons,
    )
    chosen = replace(chosen, mounts=_try_mounts(chosen, reasons))
    chosen = replace(chosen, filtered=_try_filter(chosen, reasons), landlock_abi=_try_landlock(reasons))
    try:
        folder, controllers = cgroup.find()
        chosen = replace(chosen, cgroup=folder, controllers=controllers)
        if not {"memory", "pids"} <= set(controllers):
            reasons["cgroup"] = f"{folder} has no memory or pids controller for its children"
    except OSError as error:
        reasons["cgroup"] = error.strerror or str(error)
    return _try_together(chosen, reasons)


def _try_mounts(chosen: Plan, reasons: dict[str, str]) -> tuple[str, ...]:
    if "mount" not in chosen.namespaces:
        return ()

    def attempt(features: tuple[str, ...]) -> str | None:
        with _throwaway_folder() as folder:
            return linux.try_in_child(lambda: _rehearse_mounts(chosen, features, folder))

    if (error := attempt(mounts.FEATURES)) is None:
        return mounts.FEATURES
    reasons["mounts"] = error
    alone = tuple(feature for feature in mounts.FEATURES if attempt((feature,)) is None)
    return alone if attempt(alone) is None else ()


def _try_filter(chosen: Plan, reasons: dict[str, str]) -> bool:
    if not seccomp.supported():
        reasons["seccomp"] = f"no system call numbers are known for {linux.machine()}"
        return False
    error = linux.try_in_child(lambda: seccomp.rehearse(internet="net" in chosen.namespaces))
    if error is not None:
        reasons["seccomp"] = error
    return error is None


def _try_landlock(reasons: dict[str, str]) -> int:
    try:
        abi = landlock.version()
    except OSError as error:
        reasons["landlock"] = error.strerror or str(error)
        return 0
    with _throwaway_folder() as folder:
        error_words = linux.try_in_child(lambda: landlock.rehearse(abi, folder))
    if error_words is not None:
        reasons["landlock"] = error_words
        return 0
    return abi


def _try_together(chosen: Plan, reasons: dict[str, str]) -> Plan:
    """Try all protections together. What works alone may fail together; then the later ones are dropped, with the
    reason.
    """
    fewer: tuple[tuple[str, dict[str, Any]], ...] = (
        ("landlock", {"landlock_abi": 0}),
        ("mounts", {"mounts": ()}),
        ("seccomp", {"filtered": False}),
    )
    for key, change in fewer:
        with _throwaway_folder() as folder:
            error = linux.try_in_child(lambda plan=chosen, folder=folder: _rehearse_worker(plan, folder))  # type: ignore[misc]
        if error is None:
            break
        reasons[key] = f"not together with the others: {error}"
        chosen = replace(chosen, **change)
    return chosen


def _rehearse_namespaces(names: tuple[str, ...], user_namespace: bool) -> None:
    unshare(names, user_namespace and bool(names))
    if "mount" in names:
        with _throwaway_folder() as folder:
            below("pid" in names, lambda: mounts.rehearse(folder, (), "pid" in names, (), (), ()))


def _rehearse_mounts(chosen: Plan, features: tuple[str, ...], folder: str) -> None:
    enter_supervisor(chosen)
    own_proc = "pid" in chosen.namespaces
    arguments = (folder, features, own_proc, chosen.covered, chosen.hidden, chosen.kept)
    below(own_proc, lambda: mounts.rehearse(*arguments))


def _rehearse_worker(chosen: Plan, folder: str) -> None:
    """Try the whole plan in a child, start a program in it and write a file."""
    uid = FIRST_UID if chosen.own_uid else None
    if uid is not None:
        os.chown(folder, uid, uid)

    def enter() -> None:
        enter_worker(chosen, folder, chosen.hidden, uid, 64)
        Path(folder, "written").write_text("")
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", "true >/dev/null"], {})
        if os.waitpid(pid, 0)[1] != 0:
            raise OSError(0, "a program could not be started")

    enter_supervisor(chosen)
    below(True, enter)


@contextlib.contextmanager
def _throwaway_folder() -> Iterator[str]:
    """A folder for one trial, removed afterwards."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="kgbench-plan-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
