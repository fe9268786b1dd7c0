"""``kgbench show RUN/ID --repro FILE``: what an installed package gets wrong, as a file for its issue tracker."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import click

from kgbench.cli.verdict import find_result, problem_now
from kgbench.core.details.failures import Raised
from kgbench.core.details.outputs import Alias
from kgbench.core.details.sentences import words_of
from kgbench.core.details.values import Mismatch
from kgbench.core.errors import MachineError, UsageError, shown_path
from kgbench.core.torch_process import NoAnswer, ask
from kgbench.core.types import CaseResult, Result, first_failure
from kgbench.models.adapted import adapter
from kgbench.problem.model import Problem
from kgbench.store.reader import StoredRun, read_run
from kgbench.store.repeat import seed_of

_MODULE: Final = "kgbench.torchtools.repro"
_SEARCH_S: Final = 600.0
"""Seconds in which a short file must be found."""
_RUN_S: Final = 300.0
"""Seconds that the file itself may take: it may compile."""


@dataclass(frozen=True)
class Wrong:
    """A result's first failing call, and what is wrong there."""

    case: CaseResult
    raises: str
    dtype: str
    words: str


def write_repro(run: Path, spelling: str, problem_dirs: Sequence[Path], file: Path) -> None:
    """Writes the file and runs it. Raises UsageError where there is nothing to show, MachineError where it fails."""
    stored = read_run(run)
    result = find_result(stored, spelling)
    wrong = _wrong(result)
    problem = problem_now(stored, result, problem_dirs)
    if problem is None:
        raise UsageError("KGB584", f"the problem {result.problem} is gone; give its folder with --problem-dir")
    script = _script(_asked(stored, result, problem, wrong))
    try:
        file.write_text(script, encoding="utf-8")
    except OSError as error:
        raise UsageError("KGB585", f"--repro {file}: {error.strerror}; name a file that can be written") from None
    click.echo(script, nl=False)
    said = _shown_by(file)
    click.echo(f"{shown_path(file)}: run by itself it ends with\n{said}", err=True)


def _wrong(result: Result) -> Wrong:
    """Raises UsageError for kernels that are not an installed package's, and for results without a wrong call."""
    if not result.adapted:
        raise UsageError(
            "KGB583",
            f"--repro runs a kernel outside the sandbox, so it is for installed packages (--model flaggems and the "
            f"like) alone; this one is {result.model}'s: kgbench show prints the command that judges it again",
        )
    case = first_failure(result)
    detail = None if case is None else case.detail.value if isinstance(case.detail, Alias) else case.detail
    if case is None or not isinstance(detail, (Mismatch, Raised)):
        why = "is " + str(result.outcome) + ("" if result.detail is None else f" ({words_of(result.detail)})")
        raise UsageError("KGB584", f"--repro shows a wrong element or an exception; {result.problem} {why}")
    if isinstance(detail, Raised):
        return Wrong(case, detail.name, case.dtype, f"raises {detail.name}")
    return Wrong(case, "", detail.dtype, "is wrong")


def _asked(stored: StoredRun, result: Result, problem: Problem, wrong: Wrong) -> dict[str, Any]:
    name = result.model.partition(":")[0]
    found = adapter(name)
    overload = next(each for each in problem.overloads if each.name == wrong.case.overload)
    issue = found.issue(problem, overload)
    if issue is None:
        raise UsageError("KGB584", f"--repro: {result.problem} has no operator of ATen to compare with")
    versions = (stored.info.get("device") or {}).get("versions") or {}
    beside = [each for each in ("torch", "triton") if each in versions and each != found.package]
    shown = "".join(f", {each} {versions[each]}" for each in beside)
    return {
        "problem": str(problem.path),
        "overload": overload.name,
        "case": wrong.case.id,
        "seed": seed_of(stored.info, result) or "",
        "model": result.model,
        "sample": result.sample,
        "device": result.device,
        "interpreted": result.interpreted,
        **asdict(issue),
        "raises": wrong.raises,
        "dtype": wrong.dtype,
        "returns_tensor": overload.signature.returns == "Tensor",
        "header": f"{result.adapted}{shown}: aten::{issue.operator} {wrong.words}",
    }


def _script(asked: dict[str, Any]) -> str:
    try:
        answer = ask(_MODULE, asked, _SEARCH_S)[-1]
    except NoAnswer as error:
        raise MachineError("KGB344", f"--repro: the search for a short file failed: {error}") from None
    if "script" not in answer:
        raise MachineError("KGB344", f"--repro: {answer['why']}")
    return str(answer["script"])


def _shown_by(file: Path) -> str:
    """The last line of the file's output. Raises MachineError where it ends without an error."""
    command = [sys.executable, str(file)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_RUN_S, env=os.environ, check=False)
    except subprocess.TimeoutExpired:
        raise MachineError("KGB344", f"--repro: {shown_path(file)} took over {_RUN_S:g} s") from None
    if not done.returncode:
        raise MachineError("KGB344", f"--repro: {shown_path(file)} shows nothing when it is run by itself")
    lines = done.stderr.strip().splitlines()
    return "\n".join(f"  {line}" for line in lines[-8:])
