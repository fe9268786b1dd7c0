"""``kgbench run``: the main job, from a command line to a table."""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from kgbench import owncode
from kgbench.cli.completion import complete_model, complete_run
from kgbench.cli.options import (
    GpuCount,
    check_machine,
    deadline_option,
    deadline_overrides,
    deadlines_on,
    device_option,
    problem_dir_option,
    timeout_option,
)
from kgbench.cli.report import breaks, fail_under_option, fast_at_option, json_option, print_run, thresholds
from kgbench.cli.resume import done_in, reopened, selected_by
from kgbench.errors import UsageError, shown_path
from kgbench.harness.settings import SANDBOX_LEVELS
from kgbench.paths import hidden_dirs
from kgbench.types import Outcome

if TYPE_CHECKING:
    from kgbench.coordinator import Ending, Plan
    from kgbench.harness.session import Session
    from kgbench.problem import Problem
    from kgbench.report import Report
    from kgbench.store import RunStore
    from kgbench.suites import Suite

INTERRUPTED: Final = 130

EPILOG: Final = """
\b
Examples:
  the kernels that ship with kgbench, on every problem or on two sources
    kgbench run --model examples
    kgbench run --model examples --source cublas,vllm
  your kernels: a folder with <source>/<name>.py in it, or one file
    kgbench run --model dir:my_kernels
    kgbench run --model my_kernels/aten/softmax.py
    kgbench run --model fast.py --problems aten/softmax
  the library against itself: how much noise has the clock here?
    kgbench run --model baseline --problems 'cublas/*gemm*'

Every result is kept under --out as soon as it is known; `kgbench report RUN` prints the table of a run again.

Exit codes: 0 done, 1 something was not right and --fail was given (or kgbench itself failed on a candidate), 2 wrong
command line, 3 this machine cannot, 130 interrupted.
"""


@click.command(
    epilog=EPILOG,
    short_help="Judge kernels and time them beside the library.",
    context_settings={"max_content_width": 110},
)
@click.option(
    "--model",
    metavar="PROVIDER",
    shell_complete=complete_model,
    help="Who answers: examples, dir:PATH, a path to one .py file, baseline or reference.",
)
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="NAME",
    help="aten, vllm, cublas, a comma list, or all. Repeatable.  [default: all]",
)
@click.option(
    "--problems",
    "globs",
    multiple=True,
    metavar="GLOB",
    help="Only problems whose id matches, for example 'cublas/*gemm*'. Repeatable.",
)
@click.option(
    "--suite",
    metavar="NAME",
    help="Judge other calls than the problems' own, right or wrong only: opinfo (every sample input of the installed "
    "PyTorch), trace:FILE (the calls of a trace file), or smoke (one problem of each source, in seconds).",
)
@problem_dir_option
@device_option
@click.option(
    "--gpus",
    type=GpuCount(),
    default=1,
    show_default=True,
    metavar="N|all",
    help="How many GPUs to use; those that another kgbench uses are left out.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Candidates that are prepared at once on each device; one at a time is timed.  [default: as many as cores "
    "and memory allow]",
)
@timeout_option
@deadline_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    metavar="DIR",
    help="Where the run's folder is made.",
)
@click.option(
    "--resume",
    metavar="RUN",
    shell_complete=complete_run,
    help="Do what is missing of a run, given by its folder, the begin of its id or last: candidates without a verdict, "
    "harness errors, problems whose file has changed.",
)
@click.option(
    "--seed",
    metavar="TEXT",
    help="Draw the same inputs as an earlier run. A candidate that knows the seed can know its inputs.  "
    "[default: secret]",
)
@click.option(
    "--require-sandbox",
    type=click.Choice(SANDBOX_LEVELS),
    metavar="LEVEL",
    help="Exit with 3 where kernels cannot be shut off that far: none, process, isolated or full (docs/sandbox.md).",
)
@fast_at_option
@json_option
@click.option("--fail", is_flag=True, help="Exit with 1 when any problem is not right.")
@fail_under_option
def run(
    model: str | None,
    sources: tuple[str, ...],
    globs: tuple[str, ...],
    suite: str | None,
    problem_dirs: tuple[Path, ...],
    device: str,
    gpus: int,
    jobs: int | None,
    timeout_s: float | None,
    deadlines: tuple[str, ...],
    out: Path,
    resume: str | None,
    seed: str | None,
    require_sandbox: str | None,
    fast_at: str,
    as_json: bool,
    fail: bool,
    fail_under: str,
) -> None:
    """Evaluate kernels: is each one right, and how fast is it beside the library?

    Each candidate runs in a process of its own, is judged by another one that it cannot reach, and is timed in turns
    with the library. Progress goes to stderr, the table (or JSON) to stdout.
    """
    from kgbench.bounds import check_sources, parse_bounds
    from kgbench.coordinator import Ending
    from kgbench.suites import check_name

    overrides = deadline_overrides(deadlines, timeout_s)
    values, bounds = thresholds(fast_at), parse_bounds(fail_under)
    asked: dict[str, Any] = {
        "model": model,
        "sources": list(sources),
        "problems": list(globs),
        "suite": None if suite is None else check_name(suite),
        "problem_dirs": [str(folder.resolve()) for folder in problem_dirs],
        "deadlines": [f"{phase}={seconds:g}" for phase, seconds in overrides.items()],
        "device": device,
        "require_sandbox": require_sandbox,
        "folder": str(Path.cwd()),
    }
    store = None
    if resume is not None:
        store, asked = reopened(resume, out, asked, seed)
    elif model is None:
        raise UsageError("KGB501", _which_model())
    with contextlib.ExitStack() as undo:
        if store is not None:
            undo.callback(store.close)
        check_machine()
        owncode.offer(asked["problem_dirs"])
        plan = _plan(asked, out, seed, store)
        check_sources(bounds, [problem.id for problem in plan.problems])
        undo.pop_all()
    if store is not None and not any(map(plan.missing, plan.problems)):
        store.close(finished=True)
        click.echo("nothing to do: every candidate of this run has a verdict", err=True)
        ending = Ending(store.path)
    else:
        ending = _run(plan, asked, gpus, jobs or 0, store)
    report = print_run(ending.path, values, as_json=as_json)
    if ending.error is not None or ending.interrupted:
        click.echo(f"the rest: kgbench run --resume {shown_path(ending.path)}", err=True)
    if ending.error is not None:
        raise ending.error
    broke = breaks(report, bounds)
    sys.exit(exit_code(report, ending, fail=fail) or int(broke))


def exit_code(report: Report, ending: Ending, *, fail: bool) -> int:
    """130 when interrupted; 1 when kgbench failed on a candidate or, with ``fail``, when any problem is not right."""
    if ending.interrupted:
        return INTERRUPTED
    broken = any(row.outcomes.get(Outcome.HARNESS_ERROR) for row in report.rows)
    wrong = any(row.right < row.problems for row in report.rows)
    return int(broken or (fail and wrong))


def _which_model() -> str:
    from kgbench.models import provider_summaries

    known = "\n".join(f"  {summary}" for summary in provider_summaries().values())
    return f"--model is missing: whose kernels? There is:\n{known}\nTry: kgbench run --model examples"


def _plan(asked: Mapping[str, Any], out: Path, seed: str | None, store: RunStore | None) -> Plan:
    """Everything looked up, nothing written. Raises UsageError."""
    from kgbench.coordinator import Plan, new_run_id
    from kgbench.loader import Registry, load_problem
    from kgbench.models import provider_of
    from kgbench.paths import problems_dir
    from kgbench.suites import narrowed

    provider = provider_of(asked["model"])
    registry = Registry((problems_dir(), *map(Path, asked["problem_dirs"])))
    chosen = registry.select(asked["sources"], asked["problems"]) if store is None else selected_by(store, registry)
    if asked.get("suite"):
        chosen = narrowed(asked["suite"], chosen)
    ids = provider.narrow(chosen, chosen=bool(asked["problems"]))
    for note in provider.notes:
        click.echo(note, err=True)
    problems = tuple(load_problem(registry.paths[each]) for each in ids)
    suite = _suite(asked, problems, store)
    if suite is not None and suite.shares:
        problems = tuple(problem for problem in problems if problem.id in suite.judged())
    now = datetime.now(UTC)
    return Plan(
        problems=problems,
        provider=provider,
        command=("kgbench", *sys.argv[1:]),
        seed=secrets.token_hex(16) if seed is None else seed,
        seed_is_secret=seed is None,
        out=out if store is None else store.path.parent,
        run_id=new_run_id(now, secrets.token_hex(3)) if store is None else store.path.name,
        started=now,
        deadlines=deadlines_on(asked["device"], deadline_overrides(asked["deadlines"], None)),
        asked=asked,
        suite=suite,
        done=frozenset() if store is None else done_in(store, problems),
    )


def _suite(asked: Mapping[str, Any], problems: Sequence[Problem], store: RunStore | None) -> Suite | None:
    """The suite that was asked for; that of a run which is gone on with stays as it is. Raises UsageError."""
    from kgbench.harness.devices import find_devices
    from kgbench.suites import make_suite, read_suite

    if not asked.get("suite"):
        return None
    if store is not None:
        return read_suite(store.path)
    return make_suite(asked["suite"], problems, find_devices(asked["device"])[0].kind)


def _run(plan: Plan, asked: Mapping[str, Any], gpus: int, jobs: int, reopened: RunStore | None) -> Ending:
    from rich.console import Console

    from kgbench import coordinator
    from kgbench.harness.session import Session, Settings

    console = Console(stderr=True, highlight=False)

    def open_session(store: RunStore) -> Session:
        settings = Settings(
            device=asked["device"],
            gpus=gpus,
            jobs=jobs,
            seed=plan.seed,
            deadlines=plan.deadlines,
            hidden=_hidden(plan),
            log_dir=store.log_dir,
            timing=plan.provider.timed and plan.suite is None,
            require_sandbox=asked["require_sandbox"] or "",
            say=lambda words: console.print(words, soft_wrap=True, markup=False),
        )
        return Session(settings)

    return coordinator.run(plan, open_session, console, reopened)


def _hidden(plan: Plan) -> tuple[Path, ...]:
    """What no candidate may read: problems with their tolerances, baselines, references, others' answers, results."""
    own = {problem.path.resolve().parent for problem in plan.problems}
    return hidden_dirs(plan.out, *own, *plan.asked["problem_dirs"])
