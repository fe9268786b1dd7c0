"""A shipped problem with other cases, written as a file of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from kgbench.problem.registry import load_problem


def write_with_calls(source: Path, check: Sequence[str], bench: Sequence[str], folder: Path) -> Path:
    """The problem at ``source`` with these calls, in the trace format, for all its cases; below ``folder``.

    The problem has one overload. Raises ProblemFileError where its file does not take the calls.
    """
    data = yaml.safe_load(source.read_text())
    data["cases"] = {"check": list(check), "bench": {"cpu": list(bench), "gpu": list(bench)}}
    data.pop("mutants", None)
    path = folder / source.parent.name / source.name
    path.parent.mkdir(exist_ok=True)
    path.write_text(yaml.safe_dump(data, sort_keys=False, width=10_000))
    load_problem(path)
    return path
