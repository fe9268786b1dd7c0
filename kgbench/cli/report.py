"""``kgbench report``: the table of a stored run, computed anew from its results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgbench.cli.completion import complete_run
from kgbench.errors import UsageError, numbered

if TYPE_CHECKING:
    from kgbench.bounds import Bound
    from kgbench.report import Report

fast_at_option = click.option(
    "--fast-at",
    metavar="P,P,…",
    default="0.5,0.8,1,1.2,1.5,2",
    show_default=True,
    help="The p for which fast_p is shown: right and more than p times as fast as the library.",
)
fail_under_option = click.option(
    "--fail-under",
    metavar="BOUNDS",
    default="",
    help="Exit with 1 when a share is lower: 'fast_0=1.0,cublas:fast_1=0.5' bounds fast_0 of all problems and fast_1 "
    "of cublas. fast_0 is right of every kind, the others are of kind compute.",
)
out_option = click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    metavar="DIR",
    help="Where runs lie.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout in place of the table.")


@click.command(short_help="Print the table of a stored run again.")
@click.argument("run", metavar="RUN", shell_complete=complete_run)
@out_option
@fast_at_option
@json_option
@fail_under_option
def report(run: str, out: Path, fast_at: str, as_json: bool, fail_under: str) -> None:
    """Print the table of a stored run again.

    RUN is its folder, the begin of its id, or last. A run that was interrupted or killed is read as far as it came.
    """
    from kgbench.bounds import parse_bounds
    from kgbench.store import find_run

    values, bounds = thresholds(fast_at), parse_bounds(fail_under)
    found = print_run(find_run(run, out), values, as_json=as_json)
    sys.exit(int(breaks(found, bounds)))


def breaks(report: Report, bounds: Sequence[Bound]) -> bool:
    """Says on stderr which bounds the run breaks; whether any. Raises UsageError."""
    from kgbench.bounds import broken

    lines = list(broken(bounds, report.selected, report.results))
    for line in lines:
        click.echo(f"kgbench: {numbered('KGB602', line)}", err=True)
    return bool(lines)


def thresholds(text: str) -> tuple[float, ...]:
    """The values of ``--fast-at``. Raises UsageError."""
    try:
        values = tuple(float(part) for part in text.split(","))
    except ValueError:
        values = ()
    if not values or not all(0 < value < 1000 for value in values):
        raise UsageError(
            "KGB106", f"--fast-at {text}: expected positive numbers between commas, for example --fast-at 0.5,1,2"
        )
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
