"""``kgbench report``: the table of a stored run, computed anew from its results."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgbench.errors import UsageError

if TYPE_CHECKING:
    from kgbench.report import Report

fast_at_option = click.option(
    "--fast-at",
    metavar="P,P,…",
    default="0.5,0.8,1,1.2,1.5,2",
    show_default=True,
    help="The p for which fast_p is shown: right and more than p times as fast as the library.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout in place of the table.")


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@fast_at_option
@json_option
def report(run: Path, fast_at: str, as_json: bool) -> None:
    """Print the table of a stored run again. RUN is its folder, for example runs/20260131T120000Z-1a2b3c.

    A run that was interrupted or killed is read as far as it came.
    """
    print_run(run, thresholds(fast_at), as_json=as_json)


def thresholds(text: str) -> tuple[float, ...]:
    """The values of ``--fast-at``. Raises UsageError."""
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(0 < value < 1000 for value in values):
        raise UsageError(f"--fast-at {text}: expected positive numbers between commas, for example --fast-at 0.5,1,2")
    return values


def print_run(path: Path, values: tuple[float, ...], *, as_json: bool) -> Report:
    """Prints a run's table or JSON on stdout. Raises StoreError."""
    from rich.console import Console

    from kgbench import report as reports
    from kgbench.store import json_text, read_run

    found = reports.report_of(read_run(path), values)
    if as_json:
        click.echo(json_text(reports.as_json(found), indent=2))
    else:
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]  # a dash must not end a run in an ASCII locale
        reports.print_report(found, Console(highlight=False))
    return found
