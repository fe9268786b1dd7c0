"""The command that judges a stored candidate again, with the same inputs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kgbench.core.errors import shown_path
from kgbench.core.kinds import PolicyMode
from kgbench.core.types import Result
from kgbench.store.layout import candidate_path
from kgbench.store.reader import StoredRun


def repeat_command(stored: StoredRun, result: Result) -> str:
    """The shell command that judges the same candidate again; empty when there is no candidate.

    It uses the same inputs if the seed is known.
    """
    info = stored.info
    asked = info.get("asked") or {}
    words = [word for folder in asked.get("problem_dirs", ()) for word in ("--problem-dir", shown_path(folder))]
    words += ["--device", result.device] if result.device else []
    words += [word for text in asked.get("deadlines", ()) for word in ("--deadline", text)]
    words += ["--policy", result.policy] if result.policy not in (None, PolicyMode.STRICT) else []
    seed = seed_of(info, result)
    words += ["--seed", seed] if seed else []
    file = candidate_file(stored, result)
    if file is None or result.adapted:
        ran = result.outcome.facts.has_code
        return shlex.join(["kgbench", "run", "--model", result.model, "--problems", result.problem, *words]) * ran
    whose = ["--drawn-for", f"{result.model}{sample_label(result)}"] if seed else []
    return shlex.join(["kgbench", "check", shown_path(file), result.problem, *words, *whose])


def seed_of(info: Mapping[str, Any], result: Result) -> str | None:
    """The seed of the result's inputs; None while the run is going, and when its segment was killed."""
    return next((each["seed"] for each in info.get("segments", ()) if each["seed_sha256"] == result.seed), None)


def sample_label(result: Result) -> str:
    """``#2`` for a sample's first round, ``#2.1`` for its second."""
    return f"#{result.sample}.{result.round}" if result.round else f"#{result.sample}"


def candidate_file(stored: StoredRun, result: Result) -> Path | None:
    """Path of the stored source of the result's candidate; None when the run has none."""
    path = candidate_path(stored.path, result.problem, result.sample, result.round)
    return path if path.is_file() else None
