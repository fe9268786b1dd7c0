"""The request of a run: the options of a command line, stored in run.json for resuming and repeating the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from kgbench.core.kinds import PolicyMode


@dataclass(frozen=True)
class RunRequest:
    """What is judged, who wrote it, and how it is judged. JSON-ready data only."""

    model: str = ""
    """The value of ``--model``; empty when a stored run is continued, which has its own."""
    sources: tuple[str, ...] = ()
    """The values of ``--source``; empty means all."""
    problems: tuple[str, ...] = ()
    """The values of ``--problems``; empty means all."""
    suite: str | None = None
    against: str = ""
    """The value of ``--against``: the baseline for modules of a KernelBench checkout; empty is the problem's own
    module.
    """
    problem_dirs: tuple[str, ...] = ()
    """Absolute paths of the user's own folders of problems."""
    deadlines: tuple[str, ...] = ()
    """Changed deadlines, each ``PHASE=SECONDS``."""
    device: str = "auto"
    require_sandbox: str | None = None
    """The least level of the sandbox; None takes what there is."""
    policy: PolicyMode = PolicyMode.STRICT
    folder: str = ""
    """Absolute path of the working directory, to which relative paths refer."""
    shard: str = ""
    """The value of ``--shard``; empty means all."""
    asking: Mapping[str, Any] = field(default_factory=dict)
    """Options about asking a model, by name."""

    @classmethod
    def here(
        cls,
        model: str | None,
        sources: Sequence[str] = (),
        problems: Sequence[str] = (),
        problem_dirs: Sequence[Path] = (),
        *,
        suite: str | None = None,
        against: str = "",
        deadlines: Mapping[str, float] | None = None,
        device: str = "auto",
        require_sandbox: str | None = None,
        policy: str = PolicyMode.STRICT,
        shard: str = "",
        asking: Mapping[str, Any] | None = None,
    ) -> RunRequest:
        """The request of a command line that was typed in the working directory."""
        return cls(
            model or "",
            tuple(sources),
            tuple(problems),
            suite,
            against,
            absolute(problem_dirs),
            phases(deadlines or {}),
            device,
            require_sandbox,
            PolicyMode(policy),
            str(Path.cwd()),
            shard,
            dict(asking or {}),
        )

    def to_json(self) -> dict[str, Any]:
        """As run.json has it under ``asked``."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunRequest:
        """The inverse of ``to_json``. Runs of older versions lack fields; what newer ones add is ignored."""
        known = {each.name: data[each.name] for each in fields(cls) if data.get(each.name) is not None}
        values: dict[str, Any] = {key: tuple(said) if isinstance(said, list) else said for key, said in known.items()}
        if "policy" in values:
            values["policy"] = PolicyMode(values["policy"])
        return cls(**values)


def absolute(folders: Sequence[Path]) -> tuple[str, ...]:
    return tuple(str(folder.resolve()) for folder in folders)


def phases(seconds: Mapping[str, float]) -> tuple[str, ...]:
    """``PHASE=SECONDS`` of each."""
    return tuple(f"{phase}={value:g}" for phase, value in seconds.items())
