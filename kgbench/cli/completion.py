"""What the shell completes after ``kgbench``: sources and problem ids. Installing it is in ``kgbench --help``."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from kgbench.errors import KgbenchError
from kgbench.loader import Registry
from kgbench.paths import problems_dir
from kgbench.problem import SOURCES


def complete_source(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Sources and ``all``, also behind a comma."""
    before, comma, word = incomplete.rpartition(",")
    return [CompletionItem(f"{before}{comma}{each}") for each in (*SOURCES, "all") if each.startswith(word)]


def complete_problem(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Problem ids by their begin, or by the begin of the bare name."""
    registry = Registry((problems_dir(), *(ctx.params.get("problem_dirs") or ())))
    try:
        summaries = registry.summaries()
    except KgbenchError:
        return []
    return [
        CompletionItem(each.id, help=each.summary)
        for each in summaries
        if each.id.startswith(incomplete) or each.name.startswith(incomplete)
    ]
