"""``kgbench run``: the main job, from a command line to a table."""

from __future__ import annotations

import contextlib
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import click

from kgbench.cli.asking import (
    RARELY_GIVEN,
    asked_provider,
    asking_options,
    asking_words,
    before_asking,
    model_of,
    resumed_words,
    say_left,
)
from kgbench.cli.completion import complete_model, complete_run
from kgbench.cli.options import (
    check_machine,
    deadline_option,
    deadline_overrides,
    deadlines_on,
    device_option,
    fail_option,
    gpus_option,
    jobs_option,
    new_run_option,
    policy_option,
    problem_dir_option,
    problems_option,
    require_sandbox_option,
    source_option,
    timeout_option,
)
from kgbench.cli.report import breaks, fail_under_option, fast_at_option, json_option, print_run, thresholds
from kgbench.cli.resume import done_in, reopened, selected_by
from kgbench.core import user_modules
from kgbench.core.errors import UsageError, shown_path
from kgbench.core.paths import hidden_dirs
from kgbench.core.types import Outcome

if TYPE_CHECKING:
    from kgbench.evaluation.coordinator import Ending, Plan
    from kgbench.harness.session.session import Session
    from kgbench.llm.conversation import Asker
    from kgbench.models.generation import ModelProvider
    from kgbench.models.provider import Provider
    from kgbench.problem.model import Problem
    from kgbench.problem.suites import Suite
    from kgbench.reports.model import Report
    from kgbench.scores.bounds import Bound
    from kgbench.store.writer import RunStore

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
  a model: what would it cost, and then all of it
    kgbench run --model claude --source cublas --dry-run
    kgbench run --model claude --source cublas --budget-usd 5
    kgbench run --model openai-compatible:http://localhost:8000/v1#my-model --samples 4 --rounds 3
    kgbench run --model 'exec:my_agent --quiet' --problems aten/softmax

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
    help="Who answers: a model (claude, gpt, anthropic:MODEL, openai:MODEL, openai-compatible:URL#MODEL), an agent "
    "(exec:COMMAND), the replies of an earlier run (replay:RUN), kernels that are there (examples, dir:PATH, a .py "
    "file), baseline or reference.",
)
@source_option
@problems_option
@click.option(
    "--suite",
    metavar="NAME",
    help="Judge other calls than the problems' own, right or wrong only: opinfo (every sample input of the installed "
    "PyTorch), trace:FILE (the calls of a trace file), or smoke (one problem of each source, in seconds).",
)
@problem_dir_option
@device_option
@gpus_option
@jobs_option
@timeout_option
@deadline_option
@new_run_option
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
@require_sandbox_option
@policy_option
@fast_at_option
@json_option
@fail_option
@fail_under_option
@asking_options
def run(
    model: str | None,
    sources: tuple[str, ...],
    globs: tuple[str, ...],
    suite: str | None,
    problem_dirs: tuple[Path, ...],
    device: str,
    gpus: int | None,
    jobs: int | None,
    timeout_s: float | None,
    deadlines: tuple[str, ...],
    out: Path,
    resume: str | None,
    seed: str | None,
    require_sandbox: str | None,
    policy: str,
    fast_at: str,
    as_json: bool,
    fail: bool,
    fail_under: str,
    **asking: Any,
) -> None:
    """Evaluate kernels: is each one right, and how fast is it beside the library?

    A model is asked for a kernel for each problem; each kernel is judged as soon as it is there, in a process of its
    own, by another one that it cannot reach, and is timed in turns with the library. Progress goes to stderr, the
    table (or JSON) to stdout. More about asking, such as --thinking, --shots, --batch and --agent-sees, stands in
    kgbench generate --help; all of it may be given here.
    """
    from kgbench.problem.suites import check_name
    from kgbench.scores.bounds import parse_bounds

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
        "policy": policy,
        "folder": str(Path.cwd()),
    }
    store = None
    if resume is not None:
        store, asked = reopened(resume, out, asked, seed)
        asked["asking"] = resumed_words(asked.get("asking") or {}, asking_words(asking))
    elif model is None:
        raise UsageError("KGB501", _which_model())
    else:
        asked["asking"] = asking_words(asking)
    shown = Shown(values, bounds, as_json=as_json, fail=fail)
    judged_on = JudgedOn(gpus or 0, jobs or 0)
    carry_out(asked, out, seed, store, judged_on, shown, yes=asking["yes"], dry_run=asking["dry_run"])


for option in run.params:
    if isinstance(option, click.Option) and option.name in RARELY_GIVEN:
        option.hidden = True


@dataclass(frozen=True)
class Shown:
    """How a run's results are printed, and when its exit code is 1."""

    thresholds: tuple[float, ...]
    bounds: Sequence[Bound]
    as_json: bool
    fail: bool


@dataclass(frozen=True)
class JudgedOn:
    """How much of the machine a run takes."""

    gpus: int
    jobs: int


def carry_out(
    asked: dict[str, Any],
    out: Path,
    seed: str | None,
    store: RunStore | None,
    judged_on: JudgedOn,
    shown: Shown,
    *,
    asker: Asker | None = None,
    yes: bool = False,
    dry_run: bool = False,
) -> NoReturn:
    """A run from its words to its table; ``asker`` answers in place of whom the words name. Ends the program."""
    from kgbench.evaluation.coordinator import Ending
    from kgbench.llm.conversation import Asker
    from kgbench.models.generation import ModelProvider
    from kgbench.scores.bounds import check_sources

    with contextlib.ExitStack() as undo:
        if store is not None:
            undo.callback(store.close)
        selected = selection(asked, store)
        provider = asker or model_of(asked["model"], asked["asking"])
        if dry_run and not isinstance(provider, Asker):
            raise UsageError("KGB566", f"--dry-run: nobody is asked with --model {asked['model']}")
        if not dry_run:
            if isinstance(provider, Asker):
                provider.ready()
            check_machine()
            user_modules.offer(asked["problem_dirs"])
        plan = plan_of(asked, selected, out, seed, store, provider, on_device=not dry_run)
        check_sources(shown.bounds, [problem.id for problem in plan.problems])
        if isinstance(plan.provider, ModelProvider):
            if asker is None:
                before_asking(plan.provider, plan.problems, store, yes=yes or dry_run)
            if dry_run:
                sys.exit(0)
        undo.pop_all()
    if store is not None and not any(map(plan.missing, plan.problems)):
        store.close(finished=True)
        click.echo("nothing to do: every candidate of this run has a verdict", err=True)
        ending = Ending(store.path)
    else:
        ending = _run(plan, asked, judged_on, store)
    report = print_run(ending.path, shown.thresholds, form="json" if shown.as_json else "table")
    if ending.left:
        say_left(ending.left)
    if ending.error is not None or ending.interrupted or ending.left:
        click.echo(f"the rest: kgbench run --resume {shown_path(ending.path)}", err=True)
    if ending.error is not None:
        raise ending.error
    broke = breaks(report, shown.bounds)
    sys.exit(exit_code(report, ending, fail=shown.fail) or int(broke))


def exit_code(report: Report, ending: Ending, *, fail: bool) -> int:
    """130 when interrupted; 1 when kgbench failed on a candidate or, with ``fail``, when any problem is not right."""
    if ending.interrupted:
        return INTERRUPTED
    broken = any(row.outcomes.get(Outcome.HARNESS_ERROR) for row in report.rows)
    wrong = any(row.right < row.problems for row in report.rows)
    return int(broken or (fail and wrong))


def _which_model() -> str:
    from kgbench.models.provider import provider_summaries

    known = "\n".join(f"  {summary}" for summary in provider_summaries().values())
    return f"--model is missing: whose kernels? There is:\n{known}\nTry: kgbench run --model examples"


def selection(asked: Mapping[str, Any], store: RunStore | None) -> dict[str, Path]:
    """The problems that are asked for, by id. Raises UsageError; a mistyped one is named before a key is missed."""
    from kgbench.core.paths import problems_dir
    from kgbench.problem.registry import Registry
    from kgbench.problem.suites import narrowed

    registry = Registry((problems_dir(), *map(Path, asked["problem_dirs"])))
    chosen = registry.select(asked["sources"], asked["problems"]) if store is None else selected_by(store, registry)
    if asked.get("suite"):
        chosen = narrowed(asked["suite"], chosen)
    return {each: registry.paths[each] for each in chosen}


def plan_of(
    asked: Mapping[str, Any],
    selected: Mapping[str, Path],
    out: Path,
    seed: str | None,
    store: RunStore | None,
    found: Provider | Asker,
    *,
    on_device: bool = True,
) -> Plan:
    """Everything looked up, nothing written. Raises UsageError."""
    from kgbench.evaluation.coordinator import Plan, new_run_id
    from kgbench.harness.machine.settings import Deadlines
    from kgbench.llm.conversation import Asker
    from kgbench.problem.registry import load_problem

    narrow = getattr(found, "narrow", None)
    ids = narrow(list(selected), chosen=bool(asked["problems"])) if narrow is not None else selected
    problems = tuple(load_problem(selected[each]) for each in ids)
    if isinstance(found, Asker):
        provider: Provider | ModelProvider = asked_provider(found, asked["asking"], problems, asked["problem_dirs"])
    else:
        provider = found
        for note in found.notes:
            click.echo(note, err=True)
    suite = _suite(asked, problems, store)
    if suite is not None and suite.shares:
        problems = tuple(problem for problem in problems if problem.id in suite.judged())
    now = datetime.now(UTC)
    overrides = deadline_overrides(asked["deadlines"], None)
    return Plan(
        problems=problems,
        provider=provider,
        command=("kgbench", *sys.argv[1:]),
        seed=secrets.token_hex(16) if seed is None else seed,
        seed_is_secret=seed is None,
        out=out if store is None else store.path.parent,
        run_id=new_run_id(now, secrets.token_hex(3)) if store is None else store.path.name,
        started=now,
        deadlines=deadlines_on(asked["device"], overrides) if on_device else Deadlines(),
        asked=asked,
        suite=suite,
        done={} if store is None else done_in(store, problems),
    )


def _suite(asked: Mapping[str, Any], problems: Sequence[Problem], store: RunStore | None) -> Suite | None:
    """The suite that was asked for; that of a run which is gone on with stays as it is. Raises UsageError."""
    from kgbench.harness.machine.devices import find_devices
    from kgbench.problem.suites import make_suite, read_suite

    if not asked.get("suite"):
        return None
    if store is not None:
        return read_suite(store.path)
    return make_suite(asked["suite"], problems, find_devices(asked["device"])[0].kind)


def _run(plan: Plan, asked: Mapping[str, Any], judged_on: JudgedOn, reopened: RunStore | None) -> Ending:
    from rich.console import Console

    from kgbench.evaluation import coordinator
    from kgbench.harness.session.session import Session, Settings

    console = Console(stderr=True, highlight=False)

    def open_session(store: RunStore) -> Session:
        settings = Settings(
            device=asked["device"],
            gpus=judged_on.gpus,
            jobs=judged_on.jobs,
            seed=plan.seed,
            deadlines=plan.deadlines,
            hidden=_hidden(plan),
            log_dir=store.log_dir,
            timing=plan.provider.timed and plan.suite is None,
            require_sandbox=asked["require_sandbox"] or "",
            policy=asked.get("policy", "strict"),
            say=lambda words: console.print(words, soft_wrap=True, markup=False),
        )
        return Session(settings)

    return coordinator.run(plan, open_session, console, reopened)


def _hidden(plan: Plan) -> tuple[Path, ...]:
    """What no candidate may read: problems with their tolerances, baselines, references, others' answers, results."""
    own = {problem.path.resolve().parent for problem in plan.problems}
    return hidden_dirs(plan.out, *own, *plan.asked["problem_dirs"])
