"""Shell completion: sources, problem ids, models, runs. ``kgbench --help`` says how to install it."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from kgbench.core.errors import KgbenchError
from kgbench.core.paths import example_languages
from kgbench.llm.aliases import aliases
from kgbench.problem.model import SOURCES
from kgbench.problem.registry import Registry, problem_folders
from kgbench.prompts.gpus import known_gpus


def complete_source(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Sources and ``all``, also behind a comma."""
    before, comma, word = incomplete.rpartition(",")
    try:
        known = _registry(ctx).sources
    except KgbenchError:
        known = SOURCES
    return [CompletionItem(f"{before}{comma}{each}") for each in (*known, "all") if each.startswith(word)]


def complete_model(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Providers and aliases; behind ``examples:`` the languages. A path is left to whoever types it."""
    # `kgbench list` needs nothing of providers, and does not wait for them.
    from kgbench.models.provider import provider_names

    languages = [f"examples:{each}" for each in example_languages()]
    try:
        short = tuple(aliases())
    except KgbenchError:
        short = ()
    return [CompletionItem(each) for each in (*short, *provider_names(), *languages) if each.startswith(incomplete)]


def complete_gpu(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """GPUs whose numbers are known."""
    return [CompletionItem(each) for each in known_gpus() if each.casefold().startswith(incomplete.casefold())]


def complete_problem(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Problem ids by a prefix, or by a prefix of the bare name."""
    try:
        summaries = _registry(ctx).summaries()
    except KgbenchError:
        return []
    return [
        CompletionItem(each.id, help=each.summary)
        for each in summaries
        if each.id.startswith(incomplete) or each.name.startswith(incomplete)
    ]


def complete_run(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """``last`` and the ids of runs, the newest first."""
    found = sorted(
        (path.parent.name for path in Path(ctx.params.get("out") or "runs").glob("*/run.json")), reverse=True
    )
    return [CompletionItem(each) for each in (*(["last"] if found else []), *found) if each.startswith(incomplete)]


def complete_problem_or_verdict(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Problem ids; behind ``RUN/`` those that the run was asked for."""
    run, slash, rest = incomplete.partition("/")
    out = Path(ctx.params.get("out") or "runs")
    if not slash or (run != "last" and not (out / run).is_dir()):
        return [*complete_problem(ctx, param, incomplete), *complete_run(ctx, param, incomplete)]
    from kgbench.store.find import find_run
    from kgbench.store.reader import read_info

    try:
        problems = read_info(find_run(run, out)).get("problems", ())
    except KgbenchError:
        return []
    return [CompletionItem(f"{run}/{each['id']}") for each in problems if each["id"].startswith(rest)]


def _registry(ctx: click.Context) -> Registry:
    return Registry(problem_folders(ctx.params.get("problem_dirs") or ()))
