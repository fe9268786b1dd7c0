"""What a worker is shut off from, by Linux means, and a true account of what could be had.

``plan`` finds out once, in throw-away children, what this machine allows. ``enter_keeper`` and ``enter_worker``
apply it. Each protection is tried by itself and stands without the others; docs/sandbox.md says what each stops.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from kgbench.harness.machine.settings import SANDBOX_LEVELS
from kgbench.harness.sandbox import cgroup, landlock, linux, mounts, seccomp, surroundings

FIRST_UID: Final = 70_000
"""Workers of a root-run kgbench get a uid above this, one each; no ordinary account lives there."""
MAX_FILE_BYTES: Final = 512 << 20
THREADS_PER_PROCESS: Final = 8
"""Kernel limits count threads; a worker may have this many per process that it may start."""

_ATTEMPTS: Final = (
    ("mount", "pid", "net", "ipc"),
    ("mount", "net", "ipc"),
    ("net", "ipc"),
    ("net",),
    (),
)
_FLAGS: Final = {"mount": mounts.NEWNS, "pid": 0x20000000, "net": 0x40000000, "ipc": 0x08000000}
_NEWUSER: Final = 0x10000000


@dataclass(frozen=True)
class Plan:
    """What workers on this machine get."""

    namespaces: tuple[str, ...]
    user_namespace: bool
    own_uid: bool
    mounts: tuple[str, ...] = ()
    """Of ``mounts.FEATURES``."""
    filtered: bool = False
    landlock_abi: int = 0
    """0 is none."""
    cgroup: str = ""
    """The folder in which a worker's control group is made; empty is none."""
    controllers: tuple[str, ...] = ()
    covered: tuple[str, ...] = ()
    """Folders of which only ``kept`` stays visible."""
    kept: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    """What a trusted worker sees beside ``kept``."""
    hidden: tuple[str, ...] = ()
    """Hidden from candidates, beside what the run names."""
    reasons: dict[str, str] = dataclasses.field(default_factory=dict)
    """Per thing that could not be had, why."""

    def states(self) -> dict[str, str]:
        """One line per protection, for people; what is open is in capitals."""
        return {
            "level": self.level(),
            "network": self._network() or f"OPEN{self._why('namespaces')}",
            "processes": self._processes(),
            "files": self._files(),
            "writing": self._writing(),
            "ipc": "own" if "ipc" in self.namespaces else f"SHARED{self._why('namespaces')}",
            "user": "own uid per worker" if self.own_uid else f"SHARED{self._why('uid')}",
            "privileges": "no new ones",
            "system calls": "filtered" if self.filtered else f"NOT FILTERED{self._why('seccomp')}",
            "limits": self._limits(),
        }

    def level(self) -> str:
        """The highest of SANDBOX_LEVELS of which nothing is missing."""
        missing = self.missing()
        reached = "none"
        for name in SANDBOX_LEVELS[1:]:
            if missing[name]:
                break
            reached = name
        return reached

    def missing(self) -> dict[str, list[str]]:
        """Per level, what it still lacks, in words with the reason."""
        has_files = "hidden" in self.mounts or self.landlock_abi
        needs: dict[str, list[tuple[object, str, str]]] = {
            "process": [(self.filtered, "system calls", "seccomp")],
            "isolated": [
                (self._network(), "network", "namespaces"),
                (self._signals(), "signals to others", "namespaces"),
                (has_files, "hidden files", "landlock"),
            ],
            "full": [
                (set(self.namespaces) == set(_FLAGS), "namespaces", "namespaces"),
                (self.own_uid, "own uid", "uid"),
                (self.landlock_abi, "Landlock", "landlock"),
                (set(self.mounts) == set(mounts.FEATURES), "private and read-only files", "mounts"),
                ({"memory", "pids"} <= set(self.controllers), "control group limits", "cgroup"),
            ],
        }
        return {
            level: [f"{what}{self._why(key)}" for had, what, key in each if not had] for level, each in needs.items()
        }

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Plan:
        values: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in data.items()}
        return cls(**values)

    def _network(self) -> str:
        if "net" in self.namespaces:
            return "none"
        return "refused by the system call filter" if self.filtered else ""

    def _signals(self) -> bool:
        return "pid" in self.namespaces or self.own_uid or self.landlock_abi >= landlock.SIGNALS_ABI

    def _processes(self) -> str:
        if "pid" in self.namespaces:
            return "own PID namespace"
        reach = "out of reach" if self._signals() else "IN REACH"
        return f"VISIBLE, {reach}, killed as a tree{self._why('namespaces')}"

    def _files(self) -> str:
        answers = "kgbench, problems, baselines and results hidden"
        if "hidden" in self.mounts:
            home = ", home too" if "private" in self.mounts else f", home VISIBLE{self._why('mounts')}"
            return answers + home
        if self.landlock_abi:
            return f"{answers}, home too (by Landlock: names can be listed)"
        return f"VISIBLE{self._why('namespaces')}{self._why('landlock')}"

    def _writing(self) -> str:
        if not self.landlock_abi and "read-only" not in self.mounts:
            words = "what its user may write is OPEN" if not self.own_uid else "what everybody may write is OPEN"
            return f"{words}{self._why('landlock')}"
        means = [name for name, had in (("Landlock", self.landlock_abi), ("mounts", "read-only" in self.mounts)) if had]
        shared = "" if "private" in self.mounts else " and the SHARED /dev/shm"
        return f"only its own folder{shared} (by {' and '.join(means)})"

    def _limits(self) -> str:
        hard = [words for name, words in (("memory", "memory"), ("pids", "processes")) if name in self.controllers]
        if len(hard) == 2:
            return "memory and processes by control group"
        watched = [words for words in ("memory", "processes") if words not in hard]
        words = f"{' and '.join(watched)} watched, killed above the limit"
        return f"{hard[0] + ' by control group; ' if hard else ''}{words}{self._why('cgroup')}"

    def _why(self, key: str) -> str:
        return f": {self.reasons[key]}" if key in self.reasons else ""


NOTHING: Final = Plan((), False, False)
"""A test of the harness without its sandbox. What a machine allows is never so little: it has reasons, too."""


def plan() -> Plan:
    """Try what this machine allows, each thing in a throw-away child."""
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


def enter_keeper(chosen: Plan) -> None:
    """Called in the process that will fork the worker. Raises OSError."""
    become_subreaper()
    # Mounts stay the keeper's own: it needs a /proc that shows the worker's tree.
    unshare(tuple(name for name in chosen.namespaces if name != "mount"), chosen.user_namespace)


def enter_worker(chosen: Plan, folder: str, hidden: tuple[str, ...], uid: int | None, processes: int) -> None:
    """Called in the worker after the fork, before any code of a candidate. ``hidden``: empty for trusted workers.

    Raises OSError.
    """
    die_with_parent()
    kept = chosen.kept if hidden else (*chosen.kept, *chosen.modules)
    concealed = (*hidden, *chosen.hidden) if hidden else ()
    if "mount" in chosen.namespaces:
        own_proc = "pid" in chosen.namespaces
        mounts.enter(folder, chosen.mounts, own_proc, chosen.covered, concealed, kept)
    rules = _landlock_rules(chosen, folder, concealed, kept) if chosen.landlock_abi else None
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (MAX_FILE_BYTES, MAX_FILE_BYTES))
    resource.setrlimit(resource.RLIMIT_RTPRIO, (0, 0))
    resource.setrlimit(resource.RLIMIT_NICE, (0, 0))
    if uid is not None:
        resource.setrlimit(resource.RLIMIT_NPROC, (processes * THREADS_PER_PROCESS,) * 2)
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
        # Changing the uid clears the death signal.
        die_with_parent()
    if chosen != NOTHING:
        # Root without a uid of its own could open disks and run before everybody else.
        linux.drop_capabilities()
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    if rules is not None:
        rules.restrict()
    if chosen.filtered:
        seccomp.install(internet="net" in chosen.namespaces)


def become_subreaper() -> None:
    """Orphans among this process's descendants become its children instead of init's."""
    linux.prctl(linux.PR_SET_SUBREAPER, 1)


def die_with_parent() -> None:
    linux.prctl(linux.PR_SET_PDEATHSIG, signal.SIGKILL)


def _landlock_rules(chosen: Plan, folder: str, concealed: tuple[str, ...], kept: tuple[str, ...]) -> landlock.Rules:
    writable = [folder, "/dev/shm"]
    if "private" in chosen.mounts and "/tmp" in chosen.covered:
        writable.append("/tmp")
    readable: Iterator[str] | None = None
    if concealed and "hidden" not in chosen.mounts:
        readable = landlock.all_but([*chosen.covered, *concealed], kept)
    return landlock.Rules(chosen.landlock_abi, writable, readable)


def _try_mounts(chosen: Plan, reasons: dict[str, str]) -> tuple[str, ...]:
    if "mount" not in chosen.namespaces:
        return ()

    def attempt(features: tuple[str, ...]) -> str | None:
        with throwaway_folder() as folder:
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
    with throwaway_folder() as folder:
        error_words = linux.try_in_child(lambda: landlock.rehearse(abi, folder))
    if error_words is not None:
        reasons["landlock"] = error_words
        return 0
    return abi


def _try_together(chosen: Plan, reasons: dict[str, str]) -> Plan:
    """What works alone need not work together; then the later ones go, and the account says so."""
    fewer: tuple[tuple[str, dict[str, Any]], ...] = (
        ("landlock", {"landlock_abi": 0}),
        ("mounts", {"mounts": ()}),
        ("seccomp", {"filtered": False}),
    )
    for key, change in fewer:
        with throwaway_folder() as folder:
            error = linux.try_in_child(lambda plan=chosen, folder=folder: _rehearse_worker(plan, folder))  # type: ignore[misc]
        if error is None:
            break
        reasons[key] = f"not together with the others: {error}"
        chosen = replace(chosen, **change)
    return chosen


def _rehearse_namespaces(names: tuple[str, ...], user_namespace: bool) -> None:
    unshare(names, user_namespace and bool(names))
    if "mount" in names:
        with throwaway_folder() as folder:
            below("pid" in names, lambda: mounts.rehearse(folder, (), "pid" in names, (), (), ()))


def _rehearse_mounts(chosen: Plan, features: tuple[str, ...], folder: str) -> None:
    enter_keeper(chosen)
    own_proc = "pid" in chosen.namespaces
    arguments = (folder, features, own_proc, chosen.covered, chosen.hidden, chosen.kept)
    below(own_proc, lambda: mounts.rehearse(*arguments))


def _rehearse_worker(chosen: Plan, folder: str) -> None:
    """All of it, with a program started and a file written at the end."""
    uid = FIRST_UID if chosen.own_uid else None
    if uid is not None:
        os.chown(folder, uid, uid)

    def enter() -> None:
        enter_worker(chosen, folder, chosen.hidden, uid, 64)
        Path(folder, "written").write_text("")
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", "true >/dev/null"], {})
        if os.waitpid(pid, 0)[1] != 0:
            raise OSError(0, "a program could not be started")

    enter_keeper(chosen)
    below(True, enter)


def below(fork: bool, action: Callable[[], None]) -> None:
    """In a child where the first of a PID namespace is needed. Raises OSError."""
    if not fork:
        return action()
    error = linux.try_in_child(action)
    if error is not None:
        raise OSError(0, error)


def unshare(names: tuple[str, ...], user_namespace: bool) -> None:
    """New namespaces by the names in ``_FLAGS``, in a user namespace of their own where asked. Raises OSError."""
    flags = 0
    for name in names:
        flags |= _FLAGS[name]
    if not flags:
        return
    uid, gid = os.getuid(), os.getgid()
    linux.libc_call("unshare", flags | (_NEWUSER if user_namespace else 0))
    if user_namespace:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


@contextlib.contextmanager
def throwaway_folder() -> Iterator[str]:
    """For a rehearsal; gone afterwards."""
    folder = os.path.realpath(tempfile.mkdtemp(prefix="kgbench-plan-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
