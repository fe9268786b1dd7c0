"""``kgbench validate``: checks problem files, and names what could not be checked on this machine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kgbench.cli.completion import complete_problem
from kgbench.cli.options import json_option, problem_dir_option
from kgbench.cli.validate_checkout import validate_checkout
from kgbench.core.errors import KgbenchError, MachineError, ProblemFileError, UsageError, shown_path
from kgbench.core.names import resolve
from kgbench.core.text import number_of
from kgbench.problem.model import SHARED_TEXTS
from kgbench.problem.registry import Registry, load_problem, load_summary, problem_folders

if TYPE_CHECKING:
    from kgbench.baselines.named import Named
    from kgbench.cli.referencerun import Checked
    from kgbench.problem.model import Overload

_LEFT_OUT: Final = "a kernel that leaves out 1 in 20 timed calls"
NEEDS_TORCH = "torch was not asked"


@click.command(short_help="Check problem files.")
@click.argument("paths", nargs=-1, metavar="[PATH]…", shell_complete=complete_problem)
@problem_dir_option
@click.option("--no-run", is_flag=True, help="Read the files only; run no reference, so torch is not needed.")
@click.option(
    "--suite",
    metavar="kernelbench:PATH",
    help="The problems of a checkout of KernelBench: which can be judged, and which let wrong answers pass.",
)
@click.option(
    "--device",
    default="",
    metavar="NAME",
    help="With --suite: where modules run; auto (a GPU where there is one), cpu, cuda or cuda:0,2.  [default: auto]",
)
@click.option("-v", "--verbose", is_flag=True, help="Also the chance that a kernel passes that leaves out timed calls.")
@json_option
def validate(
    paths: tuple[str, ...],
    problem_dirs: tuple[Path, ...],
    no_run: bool,
    suite: str | None,
    device: str,
    verbose: bool,
    as_json: bool,
) -> None:
    """Check problem files: keys, types, expressions, every case, and the reference on a small case on the CPU.

    Every function, BLAS routine and operator of vLLM and ATen that a file names is looked up and compared with the
    entry. Where something cannot be checked on this machine, the line says `partly`, what, and the reason. PATH is a
    problem file, a folder of them, or a problem's id; without one all problems are checked. Exit code 2 means that a
    file is wrong, 3 that references could not be run on this machine.
    """
    if suite is not None:
        validate_checkout(suite, paths, device or "auto", run=not no_run)
        return
    if device:
        raise UsageError("KGB142", f"--device {device} is for --suite kernelbench:PATH; leave it out")
    registry = Registry(problem_folders(problem_dirs))
    files = [file for path in paths for file in _files(path, registry)] or list(registry.paths.values())
    checked = {file: _read(file) for file in files}
    readable = [file for file in files if not checked[file].complaint]
    not_run: MachineError | None = None
    if not no_run and readable:
        try:
            checked |= _by_torch(readable, checked)
        except MachineError as error:
            not_run = error
    if as_json:
        click.echo(json.dumps([_as_json(file, checked[file]) for file in files], indent=2))
    for file in () if as_json else files:
        click.echo(_line(file, checked[file], verbose))
    wrong = sum(bool(each.complaint) for each in checked.values())
    partly = sum(bool(each.unseen) and not each.complaint for each in checked.values())
    said = [number_of(len(files), "problem file"), f"{wrong} wrong", *[f"{partly} not fully checked"] * bool(partly)]
    click.echo(", ".join([*said, "only read" if no_run or not_run else "references run"]), err=True)
    if worst := _worst_left_out(checked):
        click.echo(worst, err=True)
    if wrong:
        raise UsageError(
            "KGB126",
            f"{number_of(wrong, 'problem file')} of {len(files)} to fix; docs/problem-format.md has every key",
        )
    if not_run:
        raise not_run


def _line(file: Path, checked: Checked, verbose: bool) -> str:
    """The line about a file: ``ok``; ``partly``, with what was not checked; or ``wrong``."""
    if checked.complaint:
        return f"wrong  {checked.complaint}".replace("\n", "\n       ")
    unseen = [f"{', '.join(targets)}: {reason}" for reason, targets in _by_reason(checked.unseen).items()]
    chance = f"; {_LEFT_OUT} passes: {_chance(checked.left_out)}" if verbose and checked.left_out is not None else ""
    rest = f"; not checked: {'; '.join(unseen)}" if unseen else ""
    return f"{'partly' if unseen else 'ok':6} {shown_path(file)}{rest}{chance}"


def _as_json(file: Path, checked: Checked) -> dict[str, Any]:
    found = {"path": str(file), "ok": not checked.complaint and not checked.unseen, "complaint": checked.complaint}
    not_seen = [{"target": target, "reason": reason} for target, reason in checked.unseen]
    return {**found, "not_checked": not_seen, "left_out_calls_pass": checked.left_out}


def _worst_left_out(checked: Mapping[Path, Checked]) -> str:
    """The largest chance of all files; empty where none is known."""
    known = {file: each.left_out for file, each in checked.items() if each.left_out is not None}
    if not known:
        return ""
    file = max(known, key=known.__getitem__)
    return f"{_LEFT_OUT} passes with a chance of {_chance(known[file])} at most, of {shown_path(file)}"


def _chance(share: float) -> str:
    return f"{100 * share:.2g} %"


def _by_reason(unseen: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for target, reason in unseen:
        found.setdefault(reason, []).append(target)
    return found


def _files(path: str, registry: Registry) -> list[Path]:
    """The problem files that a path or an id means."""
    place = Path(path)
    if place.is_file():
        return [place]
    if place.is_dir():
        found = sorted(path for path in place.rglob("*.yaml") if path.name != SHARED_TEXTS)
        if not found:
            raise UsageError("KGB124", f"{path} holds no problem files; they are named <source>/<name>.yaml")
        return found
    if place.suffix in (".yaml", ".yml"):
        raise UsageError("KGB125", f"there is no file {path}")
    return [registry.paths[resolve(path, registry.ids()).id]]


def _read(file: Path) -> Checked:
    """Findings without torch: from reading a file, making its cases concrete and looking up its names."""
    from kgbench.baselines.named import looked_up, what_is_wrong
    from kgbench.cli.referencerun import Checked

    try:
        problem = load_problem(file)
        head = load_summary(file)
        if (head.summary, head.kind, head.category) != (problem.summary, problem.kind, problem.category):
            raise UsageError(
                "KGB206", f"{shown_path(file)}:1: summary: kgbench list reads another text; write it without escapes"
            )
        found: list[tuple[str, Named]] = []
        for overload in problem.overloads:
            _bind_all(file, overload)
            found += [(overload.name, each) for each in looked_up(overload, (file.resolve().parents[1],))]
        if error := what_is_wrong(problem.path, found):
            raise error
    except KgbenchError as error:
        return Checked(error.printed)
    unseen = [(each.target, NEEDS_TORCH if each.later else each.unseen) for _, each in found]
    return Checked("", tuple(dict.fromkeys(each for each in unseen if each[1])))


def _bind_all(file: Path, overload: Overload) -> None:
    """Raises ProblemFileError for a case whose tensors are larger than prompts promise."""
    from kgbench.problem.cases import bind, expand_for_all_devices, too_large
    from kgbench.problem.format.file import key_line

    for case in expand_for_all_devices(overload, "validate"):
        if what := too_large(bind(overload, case)):
            line = key_line(file, overload.name, "cases")
            raise ProblemFileError("KGB266", file, line, "cases", f"{case.id}: {what}; make it smaller")


def _by_torch(files: Sequence[Path], read: dict[Path, Checked]) -> dict[Path, Checked]:
    """Findings with torch, by file. Raises MachineError when this machine cannot."""
    from kgbench.cli.referencerun import run_references

    found = {}
    for file, told in run_references(files).items():
        kept = [each for each in read[file].unseen if each[1] != NEEDS_TORCH]
        found[file] = replace(told, unseen=tuple(dict.fromkeys([*kept, *told.unseen])))
    return found
