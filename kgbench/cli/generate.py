"""``kgbench generate``: asks a model; nothing is judged."""

from __future__ import annotations

import queue
import secrets
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from kgbench.cli.asking import asking_options, asking_words, before_asking, model_of, resumed_words, say_left
from kgbench.cli.completion import complete_model, complete_run
from kgbench.cli.evaluation_run import plan_of, selection
from kgbench.cli.options import (
    new_run_option,
    problem_dir_option,
    problems_option,
    source_option,
)
from kgbench.cli.resume import reopened
from kgbench.core.errors import KgbenchError, UsageError, shown_path
from kgbench.evaluation.request import RunRequest

if TYPE_CHECKING:
    from rich.console import Console

    from kgbench.evaluation.coordinator import Plan
    from kgbench.models.generation import ModelProvider
    from kgbench.store.writer import RunStore

_EPILOG_GENERATE = """
\b
Examples:
  what would it cost?
    kgbench generate --model claude --source cublas --dry-run
  ask here, judge on another machine
    kgbench generate --model claude --source cublas
    scp -r runs/20260131T235959Z-ab12cd gpu-machine:runs/
    ssh gpu-machine kgbench evaluate runs/20260131T235959Z-ab12cd

Exit codes: 0 done, 1 some questions have no reply, 2 wrong command line, 130 interrupted.
"""


@click.command(
    epilog=_EPILOG_GENERATE,
    short_help="Ask a model only; judge elsewhere.",
    context_settings={"max_content_width": 110},
)
@click.option("--model", metavar="PROVIDER", shell_complete=complete_model, help="Whom to ask; see kgbench run --help.")
@source_option
@problems_option
@problem_dir_option
@new_run_option
@click.option(
    "--resume", metavar="RUN", shell_complete=complete_run, help="Ask the questions of a run that have no reply yet."
)
@asking_options
def generate(
    model: str | None,
    sources: tuple[str, ...],
    globs: tuple[str, ...],
    problem_dirs: tuple[Path, ...],
    out: Path,
    resume: str | None,
    **asking: Any,
) -> None:
    """Ask a model for its kernels and keep the replies; nothing is judged and no GPU or torch is needed.

    The run's folder goes to a machine with a GPU, where `kgbench evaluate RUN` does the rest. What is asked is what
    `kgbench run` would ask, but for --rounds, which need a verdict between two questions.
    """
    request = RunRequest.here(model, sources, globs, problem_dirs, asking=asking_words(asking))
    store = None
    if resume is not None:
        store, begun = reopened(resume, out, request, None)
        request = replace(begun, asking=resumed_words(begun.asking, request.asking))
    elif model is None:
        raise UsageError("KGB501", "--model is missing: whom to ask? For example: kgbench generate --model claude")
    try:
        _generate(request, out, store, yes=asking["yes"], dry_run=asking["dry_run"])
    finally:
        if store is not None:
            store.release()


def _generate(request: RunRequest, out: Path, store: RunStore | None, *, yes: bool, dry_run: bool) -> NoReturn:
    from rich.console import Console

    from kgbench.llm.conversation import ModelClient
    from kgbench.models.generation import ModelProvider

    selected = selection(request, store)
    found = model_of(request.model, request.asking)
    if not isinstance(found, ModelClient):
        raise UsageError("KGB567", f"--model {request.model} already has its kernels: kgbench run judges them")
    if request.asking["rounds"] > 1:
        raise UsageError("KGB568", "--rounds need the verdict on each kernel: ask and judge together, with kgbench run")
    if not dry_run:
        found.ready()
    plan = plan_of(request, selected, out, secrets.token_hex(16), store, found, kind=None)
    if not isinstance(plan.provider, ModelProvider):
        raise TypeError("a model that is asked makes a ModelProvider")
    coming = before_asking(plan.provider, plan.problems, plan.chains, store, yes=yes or dry_run)
    if dry_run:
        sys.exit(0)
    if not coming.requests:
        click.echo("nothing to ask: every question has a reply", err=True)
        sys.exit(0)
    _ask_all(plan, plan.provider, store, Console(stderr=True, highlight=False))


def _ask_all(plan: Plan, provider: ModelProvider, reopened: RunStore | None, console: Console) -> NoReturn:
    """Ask every question of the plan and store each reply at once. Ends the program."""
    from kgbench.core.interruption import ended_by_signals
    from kgbench.evaluation.coordinator import run_facts
    from kgbench.evaluation.progress import display
    from kgbench.store.writer import RunStore

    with ended_by_signals() as no_more_signals:
        facts = run_facts(plan)
        store = reopened or RunStore.create(plan.out, plan.run_id, facts, seed=plan.seed)
        if reopened is not None:
            store.begin({}, seed=plan.seed, started=facts["started"], command=plan.command)
        events: queue.SimpleQueue[None] = queue.SimpleQueue()
        feed = provider.feed(plan.problems, plan.done, store, plan.chains)
        error: KgbenchError | None = None
        interrupted = False
        try:
            with display(console, len(plan.missing), plan.questions) as shown:
                feed.start(lambda: events.put(None), shown, None)
                while not feed.finished:
                    events.get()
                    while (work := feed.take()) is not None:
                        feed.dropped(work)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            no_more_signals()
            try:
                feed.close()
            except KgbenchError as cause:
                error = cause
            now = datetime.now(UTC).isoformat(timespec="seconds")
            store.finish("interrupted" if interrupted else "generated", finished=now, seed=plan.seed)
    if feed.left:
        say_left(feed.left)
    where = shown_path(store.path)
    if feed.left or interrupted or error:
        click.echo(f"the rest: kgbench generate --resume {where}", err=True)
    if error is not None:
        raise error
    if interrupted:
        raise KeyboardInterrupt
    click.echo(where)
    click.echo(f"next, on the machine that judges: kgbench evaluate {where}", err=True)
    sys.exit(int(bool(feed.left)))
