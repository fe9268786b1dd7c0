"""What a session is set to, as data that coordinator and referee share. No torch."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final, Self

from kgbench.core.kinds import DeviceKind, PolicyMode
from kgbench.problem.model import Problem, module_of
from kgbench.problem.sent import packed, unpacked

DEVICE_PROBE: Final = "kgbench.harness.workers.health:probe"
"""Dotted path of the function that finds out, in a worker, whether a device still computes."""
REFEREE: Final = "kgbench.harness.referee.process:main"
"""Dotted path of the function that is a referee's process."""

CPU_FACTOR: Final = 3.0
"""Factor on deadlines on the CPU: Triton's interpreter is slow, not wrong."""

"""Policies: a candidate that has others do its work is rejected, only reported, or not watched; docs/policy.md."""

SANDBOX_LEVELS: Final = ("none", "process", "isolated", "full")
"""Levels of what a worker is shut off from, each with all of the one before; docs/sandbox.md."""


@dataclass(frozen=True)
class Deadlines:
    """Seconds that one candidate may take, by phase."""

    import_s: float = 60.0
    compile_s: float = 120.0
    """Added to ``case_s`` for the first call with elements of each overload and dtype, and for every call of a library;
    to any deadline as much of it as Triton's compiler takes meanwhile."""
    extension_s: float = 300.0
    """Minimum of ``import_s`` and ``compile_s`` for candidates that build a C++ extension; added to ``whole_s``."""
    case_s: float = 10.0
    window_s: float = 30.0
    whole_s: float = 300.0

    @classmethod
    def for_device(cls, device_kind: DeviceKind) -> Deadlines:
        """The defaults for a kind of device."""
        factor = CPU_FACTOR if device_kind == DeviceKind.CPU else 1.0
        return cls(**{name: value * factor for name, value in asdict(cls()).items()})


@dataclass(frozen=True)
class Job:
    """One candidate to evaluate."""

    problem: Problem
    """The problem as it was read when the run began; its file may have changed since."""
    model: str
    sample: int = 0
    source: str | None = None
    """The candidate's text; None for a trusted one."""
    library_times: dict[str, Any] = field(default_factory=dict)
    """The library's times beside an earlier candidate on the same device, by ``overload/case``."""
    trusted: str | None = None
    """``baseline``, ``reference`` or ``mutant:NAME``: run this in the candidate's place. Only trusted code sets it."""

    suite: bool = False
    """True where the problem's own cases are replaced by a suite's calls."""
    timing: bool = True
    """False: correctness only, also in a session that times."""
    round: int = 0
    """Number of a model's answer within one sample, from 0."""
    adapted: str = ""
    """The installed package, with its version, whose kernel the text calls; its NotImplementedError says that it does
    not offer a call. Only trusted code sets it: a candidate's own would pick its calls."""
    suspected: bool = False
    """A device stopped working while this was judged: it is judged alone on its device."""
    practice: bool = False
    """True for a trial before a submission: sizes and values differ from those of every verdict."""
    compiled: str = ""
    """File of what was compiled ahead of its judging (``wire/ahead.py``); empty where nothing was."""

    @property
    def problem_id(self) -> str:
        return self.problem.id

    @property
    def candidate_sha256(self) -> str:
        """SHA-256 of the candidate's text; empty for a trusted one."""
        return hashlib.sha256(self.source.encode()).hexdigest() if self.source else ""

    def to_json(self) -> dict[str, Any]:
        """The form in which it is sent to a referee."""
        return {**{each.name: getattr(self, each.name) for each in fields(self)}, "problem": packed(self.problem)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of ``to_json``. Raises ValueError where it has a field that this class has not."""
        if unknown := sorted(set(data) - {each.name for each in fields(cls)}):
            raise ValueError(f"a job has no field {unknown[0]!r}; there are {', '.join(f.name for f in fields(cls))}")
        return cls(**{**data, "problem": unpacked(data["problem"])})

    @property
    def mutant(self) -> str:
        """Which mutant of kgbench/problem/mutants.py runs; empty when none does."""
        return (self.trusted or "").partition("mutant:")[2]

    @property
    def as_reference(self) -> bool:
        """Whether the problem's reference runs, mutated or not: it is told what a candidate knows.

        A module is its own reference, and is called as a candidate is.
        """
        return (self.trusted == "reference" or bool(self.mutant)) and module_of(self.problem) is None


@dataclass(frozen=True)
class RefereeSettings:
    """What a referee is started with."""

    device_kind: DeviceKind
    device_uuid: str
    seed: str
    deadlines: Deadlines
    hidden: tuple[str, ...] = ()
    """Folders that a candidate must not see."""
    modules: tuple[str, ...] = ()
    """Folders of the user's own problems, from which trusted code may import."""
    limits: dict[str, int] = field(default_factory=dict)
    timing: bool = True
    number: int = 0
    """Number of this referee among its device's, from 0."""
    turn_cores: tuple[int, ...] = ()
    """Processor cores for this device's turns (``cores.for_turns``)."""
    probe: str = DEVICE_PROBE
    policy: PolicyMode = PolicyMode.OFF
    noise: dict[str, float] = field(default_factory=dict)
    """Noise of a ratio that a null test on this device showed, by range of time (``clock/statistics.py``)."""
    trace: str = ""
    """Folder in which the referee records what it does; empty where no timeline was asked for."""
    peaks: dict[str, Any] | None = None
    """Peaks of the device as ``clock/peaks.py`` measures them; None has its first referee measure them."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> RefereeSettings:
        read: dict[str, Any] = {name: tuple(data[name]) for name in ("hidden", "turn_cores") if name in data}
        read["deadlines"] = Deadlines(**data["deadlines"])
        read["device_kind"] = DeviceKind(data["device_kind"])
        read["policy"] = PolicyMode(data.get("policy", PolicyMode.OFF))
        return cls(**{**data, **read})


def default_limits() -> dict[str, int]:
    """Host memory: half of the machine's, at most 16 GiB; output 64 MiB; 2 GiB written to disks; 256 processes."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory_bytes = min(total // 2, 16 << 30)
    return {"memory_bytes": memory_bytes, "output_bytes": 64 << 20, "written_bytes": 2 << 30, "processes": 256}
