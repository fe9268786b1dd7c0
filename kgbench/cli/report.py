"""``kgbench report``: the table of a stored run, computed again from its results."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kgbench.cli.completion import complete_run
from kgbench.cli.options import (
    fail_under_option,
    fast_at_option,
    html_option,
    json_option,
    one_report,
    out_option,
    thresholds,
)
from kgbench.cli.report_output import FORMATS, breaks, print_run, say_notes
from kgbench.core.errors import UsageError, numbered

if TYPE_CHECKING:
    from kgbench.reports.model import Report

BY_FORMATS: Final = ("table", "md", "latex", "csv", "json")
"""Those that ``--by`` goes with."""
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(list(FORMATS)),
    default="table",
    show_default=True,
    help="What to print on stdout.",
)
to_option = click.option(
    "--to",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write this file in place of stdout; with kernelbench, backendbench and kgb a folder with all their files.",
)
cite_option = click.option(
    "--cite", is_flag=True, help="Print BibTeX, and what a paper says beside a number, in place of the table."
)
costs_option = click.option(
    "--costs",
    is_flag=True,
    help="Print where the run's time went, per phase and per problem, in place of the table; with --json all of it.",
)
best_library_option = click.option(
    "--best-library",
    "libraries",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    multiple=True,
    metavar="DIR",
    help="The folder of a run of an installed package on the same GPU (docs/packages.md). Also prints speedups over "
    "the fastest of the library and these. Repeatable.",
)
by_option = click.option(
    "--by",
    type=click.Choice(["source", "category", "problem", "kind", "model"]),
    help="One row for each of these in place of each source, in table, md, latex, csv and json; CSV is then that "
    "table, and not a row per case.",
)


@click.command(short_help="Print the table of a stored run again.")
@click.argument("run", metavar="RUN", shell_complete=complete_run)
@out_option
@fast_at_option
@by_option
@format_option
@json_option
@cite_option
@costs_option
@to_option
@html_option
@fail_under_option
@best_library_option
@click.option("--on", default="", metavar="MODEL", help="Only what this model of device judged, in a run on several.")
def report(
    run: str,
    out: Path,
    fast_at: str,
    by: str | None,
    form: str,
    as_json: bool,
    cite: bool,
    costs: bool,
    to: Path | None,
    html: Path | None,
    fail_under: str,
    libraries: tuple[Path, ...],
    on: str,
) -> None:
    """Print the table of a stored run again.

    With --html it is a page with every sample's code, verdict and times (docs/page.md).

    RUN is its folder, a prefix of its id, or last. A run that was interrupted or killed is read as far as it came.
    """
    from kgbench.scores.bounds import parse_bounds
    from kgbench.store.find import find_run

    values, bounds = thresholds(fast_at), parse_bounds(fail_under)
    if costs:
        one_report({"--costs": True, "--html": html, "--cite": cite, f"--format {form}": form != "table"})
        _check_costs(by, to)
        print_costs(find_run(run, out), as_json=as_json)
        return
    form = _one_form(form, as_json=as_json, cite=cite, by=by, to=to, html=html, libraries=libraries)
    path = find_run(run, out)
    if html:
        found = write_html(path, values, html, on)
    else:
        found = print_run(path, values, form=form, by=by, to=to, on=on, libraries=libraries)
    sys.exit(int(breaks(found, bounds)))


def _one_form(
    form: str,
    *,
    as_json: bool,
    cite: bool,
    by: str | None,
    to: Path | None,
    html: Path | None,
    libraries: Sequence[Path],
) -> str:
    """The format that is meant. Raises UsageError where options ask for two reports, or for one that there is not."""
    asked = {"--html": html, "--json": as_json, "--cite": cite, f"--format {form}": form != "table"}
    named = one_report(asked)
    form = "json" if as_json else "cite" if cite else form
    wrong = ""
    if html and (by or to or libraries):
        other = "--by" if by else "--to" if to else "--best-library"
        wrong = f"--html is a whole page and names its file itself; leave {other} out"
    elif by and form not in BY_FORMATS:
        wrong = f"{named} has no table for --by to make; take --format {', '.join(BY_FORMATS)}"
    if wrong:
        raise UsageError("KGB190", wrong)
    return form


def _check_costs(by: str | None, to: Path | None) -> None:
    """Raises UsageError where options ask for what the table of costs does not have."""
    if by or to:
        raise UsageError("KGB190", f"--costs has tables of its own on stdout; leave {'--by' if by else '--to'} out")


def print_costs(path: Path, *, as_json: bool) -> None:
    """Prints where the time of a run went. Raises StoreError."""
    from kgbench.reports.wall_time import print_wall_time
    from kgbench.scores.wall_time import wall_time
    from kgbench.store.reader import read_run

    stored = read_run(path, with_windows=True)
    say_notes(stored)
    print_wall_time(wall_time(stored.info, stored.results), sys.stdout, as_json=as_json)


def write_html(path: Path, values: tuple[float, ...], html: Path, on: str) -> tuple[Report, ...]:
    """Writes a run as a page, and says how large it is. Raises StoreError, UsageError."""
    from kgbench.core.figures import size
    from kgbench.reports.page.document import write_page
    from kgbench.reports.page.source import page_source
    from kgbench.store.by_device import on_device
    from kgbench.store.reader import read_run
    from kgbench.store.repeat import repeat_command

    stored = on_device(read_run(path, with_windows=True), on)
    source = page_source(stored, lambda result: repeat_command(stored, result), values)
    written = write_page(source, html)
    folder = "; too much for one file, so keep the folder together" if written.is_folder else ""
    click.echo(f"{written.path}: {size(written.bytes)}{folder}")
    if not written.charts:
        words = "The page has its figures in tables only: for charts, pip install 'kgbench[page]' and write it again."
        click.echo(f"kgbench: {numbered('KGB618', words)}", err=True)
    return (source.report,)
