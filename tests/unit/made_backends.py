"""Runs whose kernels are plain texts of a test, and packages made of them."""

from __future__ import annotations

import importlib
import itertools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from kgbench.backend.choose import Chosen, LeftOut, choose
from kgbench.backend.package import package_files
from kgbench.core.kinds import DeviceKind, Phase
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Library, Result
from kgbench.problem.cases import expand_cases
from kgbench.problem.model import Problem
from kgbench.problem.registry import Registry
from kgbench.reports.export.folder import write
from kgbench.store.encoding import json_text, sha256
from kgbench.store.reader import StoredRun, read_run
from tests.unit.made_results import timing

DEVICE = {"kind": "cpu", "name": "a CPU", "versions": {"torch": "2"}}
_numbers = itertools.count()


def judged(
    name: str, text: str, *, ratio: float | None = 2.0, seed: str = "s", problem: Problem | None = None, **changes: Any
) -> Result:
    """A verdict as a CPU's run stores it: every case passed, timed ones at ``ratio``. ``problem``: with other cases."""
    problem = problem or Registry().find(name)
    cases = []
    for overload in problem.judged:
        for case in expand_cases(overload, DeviceKind.CPU, None, seed):
            timed = timing(ratio) if ratio is not None and case.phase == Phase.BENCH else None
            cases.append(
                CaseResult(case.id, overload.name, case.phase, case.dtype, case.variables, Outcome.PASSED, timing=timed)
            )
    fields: dict[str, Any] = {
        "candidate_sha256": sha256(text), "problem_sha256": problem.sha256, "kind": problem.kind, "device": "cpu",
        "deterministic": True, "overloads": {each.name: "passed" for each in problem.judged}, "cases": tuple(cases),
        "library": Library("PyTorch 2"), "outcome": Outcome.PASSED,
    }  # fmt: skip
    return Result(name, "m", 0, **{**fields, **changes})


def run_of(folder: Path, *pairs: tuple[Result, str], device: dict[str, Any] = DEVICE) -> StoredRun:
    """A run's folder with these verdicts and texts."""
    problems = [{"id": result.problem, "kind": result.kind, "sha256": result.problem_sha256} for result, _ in pairs]
    info = {"format": 1, "id": folder.name, "model": "m", "device": device, "problems": problems, "segments": [],
            "started": "2026-01-31T10:00:00Z", "status": "finished"}  # fmt: skip
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json_text(info))
    (folder / "results.jsonl").write_text("".join(json_text(result.to_json()) + "\n" for result, _ in pairs))
    for result, text in pairs:
        path = folder / "candidates" / f"{result.problem}.{result.sample}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return read_run(folder)


def written(tmp_path: Path, kernels: dict[str, str], **changes: Any) -> Path:
    """The folder of a package of these kernels, by problem; its name is new each time."""
    pairs = [(judged(name, text, **changes), text) for name, text in kernels.items()]
    run = run_of(tmp_path / f"run{next(_numbers)}", *pairs)
    chosen, left = choose([run], all_correct=True)
    return write_package(tmp_path, run, chosen, left)


def write_package(tmp_path: Path, run: StoredRun, chosen: list[Chosen], left: list[LeftOut]) -> Path:
    name = f"made_backend_{next(_numbers)}"
    write(package_files(name, [run], chosen, left), tmp_path / name)
    return tmp_path / name


@contextmanager
def imported(folder: Path) -> Iterator[ModuleType]:
    """The package, as if it were installed."""
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module(folder.name)
    finally:
        sys.path.remove(str(folder))
        for name in [each for each in sys.modules if each.partition(".")[0] == folder.name]:
            del sys.modules[name]


def table_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / folder.name / "table.json").read_text())
    return found
