"""Confines an agent: hides kgbench's files, the home and what the run hides, and says what could not be hidden.

Runs in the launcher, never in the coordinator. The network stays open, since agents talk to their models. Each way of
``_WAYS`` is tried in a throw-away child, with a file of every secret place that must not open afterwards; the first
that works is taken.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import resource
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kgbench.core import paths
from kgbench.harness.sandbox import landlock, linux, mounts, seccomp, surroundings
from kgbench.harness.sandbox.namespaces import below, unshare

_SCRATCH: Final = ("/tmp", "/var/tmp")
_RUN: Final = "/run"
"""Folder of sockets of services, such as Docker's or the user's systemd, which could act for an agent without its
limits.
"""
_RESOLVER: Final = "/etc/resolv.conf"
_FROZEN: Final = ("/proc/sys", "/proc/sysrq-trigger")
_PR_CAPBSET_DROP, _CAPABILITY_VERSION = 24, 0x20080522
_CAPABILITIES: Final = (0, 1, 3)
"""Capabilities that root keeps: CHOWN, DAC_OVERRIDE and FOWNER, for files of others in a container."""


_CALLS: Final = (
    "pidfd_open", "pidfd_send_signal", "memfd_create", "memfd_secret", "shmget", "mincore", "cachestat", "fadvise64",
)  # fmt: skip
"""System calls that stay allowed: runtimes wait for their children and manage memory with them. They reach only
processes that signals reach.
"""


@dataclass(frozen=True)
class Way:
    """One way of confining an agent."""

    namespaces: tuple[str, ...]
    features: tuple[str, ...]
    """Features of the mount namespace that this way needs, of ``mounts.FEATURES``."""
    landlock: bool


_WAYS: Final = (
    Way(("mount", "pid", "ipc"), ("private", "read-only"), True),
    Way(("mount", "pid", "ipc"), ("private", "read-only"), False),
    Way(("mount", "pid", "ipc"), ("private",), False),
    # Without a /proc of its own only Landlock keeps an agent from going through /proc/PID/root.
    Way(("mount",), ("private", "read-only"), True),
    Way((), (), True),
)


@dataclass(frozen=True)
class Places:
    """The parts of the file system that an agent gets."""

    folder: str
    """Folder that the agent works in."""
    spare: str
    """A folder for ``home`` and ``tmp`` where those cannot be mounted."""
    secret: tuple[str, ...]
    """Folders of which nothing may be read but ``kept``."""
    covered: tuple[str, ...]
    """``secret``, and other private folders, outer ones first."""
    kept: tuple[str, ...]
    own: tuple[str, ...]
    """Folders of ``kept`` and ``covered`` that it may write to."""
    home: str

    @classmethod
    def of(cls, base: Path, hidden: Sequence[str], visible: Sequence[str], command: Sequence[str]) -> Places:
        """``base`` has the agent's folder in it; ``command``: files that its command line names."""
        secret = _reduced([*_package(), *map(str, paths.hidden_dirs()), *map(os.path.realpath, hidden)])
        home = os.environ.get("HOME") or pwd.getpwuid(os.getuid()).pw_dir
        private = _reduced([*surroundings.covered(), home, *_SCRATCH, tempfile.gettempdir()])
        covered = tuple(sorted({*private, *secret, *_reduced([_RUN])}, key=len))
        visible = [path for path in visible if not _below(os.path.realpath(path), secret)]
        shown = [form for path in visible if not _is_copied(path, home) for form in _forms(path)]
        python = [path for path in surroundings.python() if path not in covered and not _in_answers(path, secret)]
        programs = [path for path in _beside(command) if path not in covered and not _below(path, secret)]
        named = [form for path in command for form in _forms(path)]
        kept = [*python, *programs, *named, *shown, str(base / "socket"), os.path.dirname(os.path.realpath(_RESOLVER))]
        own = [path for path in shown if os.path.isdir(path)]
        return cls(
            str(base / "work"),
            str(base / "spare"),
            secret,
            covered,
            tuple(sorted(path for path in set(kept) if os.path.exists(path))),
            tuple(dict.fromkeys([*own, *(path for path in private if path not in secret)])),
            home,
        )


@dataclass(frozen=True)
class Confinement:
    """The confinement of an agent on this machine."""

    places: Places
    way: Way | None
    """The way of confining; None where it is not confined."""
    user_namespace: bool = False
    landlock_abi: int = 0
    filtered: bool = False
    reason: str = ""
    """Why it is not confined."""
    witnesses: tuple[str, ...] = ()
    """A file of each secret place; none of them may open."""
    copied: dict[str, tuple[int, bytes]] = field(default_factory=dict, repr=False)
    """Single files of the home that it may see: mode and content. A mount could not be replaced by a rename."""

    @property
    def words(self) -> str:
        """For people, and for the row."""
        if self.way is None:
            return f"agent not confined: {self.reason}"
        files = "mounts" if self.mounted else "Landlock (names can be listed)"
        processes = "own processes" if "pid" in self.way.namespaces else "others' processes listed, not open"
        calls = "system calls filtered" if self.filtered else "system calls not filtered"
        return f"agent confined: files by {files}; {processes}; {calls}; network open"

    @property
    def mounted(self) -> bool:
        return self.way is not None and "mount" in self.way.namespaces

    def environment(self) -> dict[str, str]:
        """Variables that say where it may write."""
        if self.mounted or self.way is None:
            return {"HOME": self.places.home}
        return {"HOME": f"{self.places.spare}/home", "TMPDIR": f"{self.places.spare}/tmp"}

    def enter_launcher(self) -> None:
        """Called in the process that will fork the agent's first process. Raises OSError."""
        linux.become_subreaper()
        if self.way is not None:
            # Mounts are made by the first process of the agent's own PID namespace, whose /proc it needs.
            unshare(tuple(name for name in self.way.namespaces if name != "mount"), self.user_namespace)

    def enter_files(self) -> None:
        """Called in the agent's first process, which stays above the agent. Raises OSError."""
        places, way = self.places, self.way
        if way is None or not self.mounted:
            return
        devices = [] if self.user_namespace else _block_devices()
        own_proc = "pid" in way.namespaces
        mounts.enter(places.folder, way.features, own_proc, places.covered, (), places.kept, places.own)
        for path in devices:
            mounts.shut(path)
        for path in _FROZEN if own_proc and not self.user_namespace else ():
            if os.path.exists(path):
                mounts.freeze(path)
        for path, (mode, content) in self.copied.items():
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            Path(path).write_bytes(content)
            os.chmod(path, mode)
        os.chdir(places.folder)

    def enter_agent(self) -> None:
        """Called in the agent itself, right before its program. Raises OSError."""
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if self.way is None:
            return
        if not self.mounted:
            self._make_home()
        rules = self._rules() if self.landlock_abi else None
        if os.geteuid() == 0:
            _drop_capabilities()
        linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
        if rules is not None:
            rules.restrict()
        if self.filtered:
            seccomp.install(internet=True, spared=_CALLS)
        for path in self.witnesses:
            if _opens(path):
                raise OSError(0, f"{path} can still be read")

    def _rules(self) -> landlock.Rules:
        places = self.places
        if self.mounted:
            return landlock.Rules(self.landlock_abi, ["/"], None, network=True)
        kept = [*places.kept, places.folder, places.spare]
        own = [path for path in places.own if path not in places.covered]
        readable = landlock.all_but([*places.covered, *_block_devices()], kept)
        writable = [places.folder, places.spare, *own, "/dev/shm", "/dev/pts"]
        rules = landlock.Rules(self.landlock_abi, writable, readable, network=True)
        rules.allow_device("/dev/ptmx")
        return rules

    def _make_home(self) -> None:
        """Make a home that contains only what the agent may see, by links and copies."""
        home = Path(self.places.spare, "home")
        for name in ("home", "tmp"):
            Path(self.places.spare, name).mkdir(exist_ok=True)
        for path in self.places.own:
            if _below(path, (self.places.home,)) and path != self.places.home:
                link = home / os.path.relpath(path, self.places.home)
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link.is_symlink():
                    link.symlink_to(path)
        for path, (mode, content) in self.copied.items():
            copy = home / os.path.relpath(path, self.places.home)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content)
            copy.chmod(mode)


def plan(places: Places, visible: Sequence[str], confine: str) -> Confinement:
    """The best way that this machine allows, each rehearsed in a throw-away child; ``confine`` as ``Agent`` has it."""
    if confine == "not":
        return Confinement(places, None, reason="asked not to be")
    chosen = Confinement(
        places,
        None,
        user_namespace=os.geteuid() != 0,
        filtered=seccomp.supported() and linux.try_in_child(lambda: seccomp.rehearse(internet=True)) is None,
        witnesses=tuple(_witnesses(places)),
        copied=_copied(places, visible),
    )
    try:
        abi = landlock.version()
    except OSError as error:
        abi, closed = 0, error.strerror or str(error)
    else:
        closed = ""
    reasons = [closed] if closed else []
    for way in _WAYS:
        if (way.landlock and not abi) or (way.namespaces and confine == "by landlock"):
            continue
        attempt = replace(chosen, way=way, landlock_abi=abi if way.landlock else 0)
        error_words = linux.try_in_child(lambda attempt=attempt: _rehearse(attempt))  # type: ignore[misc]
        if error_words is None:
            return attempt
        reasons.append(error_words)
    return replace(chosen, reason="; ".join(dict.fromkeys(reasons)))


def _rehearse(attempt: Confinement) -> None:
    """Try the whole confinement, with a file written and a program started at the end. Raises OSError."""

    def enter() -> None:
        attempt.enter_files()
        attempt.enter_agent()
        written = Path(attempt.places.folder, ".rehearsed")
        written.write_text("")
        written.unlink()
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", "true >/dev/null"], {})
        if os.waitpid(pid, 0)[1] != 0:
            raise OSError(0, "a program could not be started")

    attempt.enter_launcher()
    below(True, enter)


def _package() -> Iterator[str]:
    """kgbench's own files; of a checkout all, its tests and history too."""
    yield str(paths.checkout() or paths.PACKAGE)


def _in_answers(path: str, secret: Sequence[str]) -> bool:
    """Below a secret place only Python itself stays visible, where its environment lies in the checkout."""
    prefixes = [form for each in (sys.prefix, sys.base_prefix) for form in _forms(each)]
    return _below(path, secret) and not _below(path, prefixes)


def _beside(command: Sequence[str]) -> Iterator[str]:
    """The folders of the command's files, and of the packages that npm keeps them in."""
    for path in command:
        for form in _forms(path):
            yield os.path.dirname(form)
            above = [str(each) for each in Path(form).parents if each.name == "node_modules"]
            yield from above[-1:]


def _copied(places: Places, visible: Sequence[str]) -> dict[str, tuple[int, bytes]]:
    found: dict[str, tuple[int, bytes]] = {}
    for path in map(os.path.abspath, visible):
        if _is_copied(path, places.home) and not _below(os.path.realpath(path), places.secret):
            found[path] = (stat.S_IMODE(os.stat(path).st_mode), Path(path).read_bytes())
    return found


def _is_copied(path: str, home: str) -> bool:
    return os.path.isfile(path) and _below(os.path.abspath(path), (home,))


def _witnesses(places: Places) -> Iterator[str]:
    """One readable file of each secret place that has one."""
    for place in places.secret:
        for folder, names, files in os.walk(place):
            names[:] = [name for name in names if not _below(os.path.join(folder, name), places.kept)]
            found = [os.path.join(folder, name) for name in files]
            if first := next((path for path in found if path not in places.kept and _opens(path)), ""):
                yield first
                break


def _opens(path: str) -> bool:
    try:
        with open(path, "rb"):
            return True
    except OSError:
        return False


def _block_devices() -> list[str]:
    """Block devices that this process may read directly, below any file system."""
    found = []
    for folder, _, names in os.walk("/dev"):
        for path in (os.path.join(folder, name) for name in names):
            try:
                if stat.S_ISBLK(os.lstat(path).st_mode) and os.access(path, os.R_OK):
                    found.append(path)
            except OSError:
                continue
    return found


def _drop_capabilities() -> None:
    """Drop root's capabilities: it owns its files and can undo nothing."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    had, most = int(status["CapPrm"], 16), int(status["CapBnd"], 16)
    for capability in range(most.bit_length()):
        # A container may refuse this; then no_new_privs alone keeps a program from getting back what is given up here.
        if capability not in _CAPABILITIES:
            with contextlib.suppress(PermissionError):
                linux.prctl(_PR_CAPBSET_DROP, capability)
    mask = had & sum(1 << capability for capability in _CAPABILITIES)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    # Effective, permitted and inheritable of the lower half, then of the upper.
    linux.libc_call("capset", header, (ctypes.c_uint32 * 6)(mask, mask, 0, 0, 0, 0))


def _reduced(places: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({os.path.realpath(path) for path in places if path and os.path.exists(path)} - {"/"}))


def _forms(path: str) -> tuple[str, str]:
    """The path as written and with links resolved."""
    return os.path.abspath(path), os.path.realpath(path)


def _below(path: str, folders: Sequence[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)
