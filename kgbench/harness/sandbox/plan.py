"""What workers on this machine are shut off from, and which protections are missing, with the reasons.

``probe.py`` makes the plan, ``enter.py`` applies it.
"""

from __future__ import annotations

import dataclasses
from dataclasses import asdict, dataclass
from typing import Any, Final

from kgbench.core.errors import MachineError
from kgbench.harness.machine.settings import SANDBOX_LEVELS
from kgbench.harness.sandbox import landlock, mounts
from kgbench.harness.sandbox.namespaces import NAMESPACES


@dataclass(frozen=True)
class Plan:
    """The protections of workers on this machine."""

    namespaces: tuple[str, ...]
    user_namespace: bool
    own_uid: bool
    mounts: tuple[str, ...] = ()
    """The ``mounts.FEATURES`` that work here."""
    filtered: bool = False
    landlock_abi: int = 0
    """Version of Landlock's interface; 0 where there is none."""
    cgroup: str = ""
    """The folder in which a worker's control group is made; empty where none can be."""
    controllers: tuple[str, ...] = ()
    covered: tuple[str, ...] = ()
    """Folders that workers do not see, except for ``kept``."""
    kept: tuple[str, ...] = ()
    """Folders below ``covered`` that every worker sees: Python, its packages, compilers."""
    modules: tuple[str, ...] = ()
    """Folders that a trusted worker sees in addition to ``kept``."""
    hidden: tuple[str, ...] = ()
    """Folders hidden from candidates, in addition to those that the run names."""
    reasons: dict[str, str] = dataclasses.field(default_factory=dict)
    """Why a protection is missing, by its key."""

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

    def open(self) -> list[str]:
        """The names of the states in which something is missing."""
        ways_out = {
            "network": not self._network(),
            "processes": "pid" not in self.namespaces,
            "files": "private" not in self.mounts if "hidden" in self.mounts else not self.landlock_abi,
            "writing": not self._writes_less() or "private" not in self.mounts,
            "ipc": "ipc" not in self.namespaces,
            "user": not self.own_uid,
            "system calls": not self.filtered,
        }
        return [name for name, is_open in ways_out.items() if is_open]

    def level(self) -> str:
        """The highest of SANDBOX_LEVELS that is fully met."""
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
                (set(self.namespaces) == set(NAMESPACES), "namespaces", "namespaces"),
                (self.own_uid, "own uid", "uid"),
                (self.landlock_abi, "Landlock", "landlock"),
                (set(self.mounts) == set(mounts.FEATURES), "private and read-only files", "mounts"),
                ({"memory", "pids"} <= set(self.controllers), "control group limits", "cgroup"),
            ],
        }
        return {
            level: [f"{what}{self._why(key)}" for had, what, key in each if not had] for level, each in needs.items()
        }

    def require(self, level: str) -> None:
        """Raises MachineError, saying what is missing, below a level; empty asks for none."""
        had = self.level()
        if not level or SANDBOX_LEVELS.index(had) >= SANDBOX_LEVELS.index(level):
            return
        missing = self.missing()
        asked = SANDBOX_LEVELS[1 : SANDBOX_LEVELS.index(level) + 1]
        lines = [f"  {each}: {what}" for each in asked for what in missing[each]]
        raise MachineError(
            "KGB315",
            f"the sandbox on this machine is level {had!r}, and --require-sandbox asks for {level!r}. "
            "It lacks:\n" + "\n".join(lines) + "\ndocs/sandbox.md says how to get each",
        )

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

    def _writes_less(self) -> bool:
        return bool(self.landlock_abi) or "read-only" in self.mounts

    def _writing(self) -> str:
        if not self._writes_less():
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
"""No protection at all, for a test of the harness without its sandbox. A real machine's plan never equals it: that has
``reasons``, too.
"""
