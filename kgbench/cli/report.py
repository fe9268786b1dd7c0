"""``kgbench report``: the table of a stored run, computed anew from its results."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import click

from kgbench.cli.completion import complete_run
from kgbench.core.errors import UsageError, numbered

if TYPE_CHECKING:
    from kgbench.reports.model import Report
    from kgbench.scores.bounds import Bound
    from kgbench.store.reader import StoredRun

FORMATS: Final = {
    "table": "kgbench.reports.terminal:print_table",
    "json": "kgbench.reports.json_data:print_json",
    "md": "kgbench.reports.formats:print_markdown",
    "latex": "kgbench.reports.formats:print_latex",
    "csv": "kgbench.reports.export.tidy:print_csv",
    "parquet": "kgbench.reports.export.tidy:print_parquet",
    "kernelbench": "kgbench.reports.export.kernelbench:print_results",
    "backendbench": "kgbench.reports.export.backendbench:print_results",
    "kgb": "kgbench.reports.export.kernelgenbench:print_results",
    "junit": "kgbench.reports.export.junit:print_junit",
    "github": "kgbench.reports.export.github:print_github",
    "cite": "kgbench.reports.export.cite:print_citation",
}
"""What writes a report, by the name that ``--format`` knows: a function of the report and a text stream.

One that writes bytes takes the stream's ``buffer``.
"""
BY_FORMATS: Final = ("table", "md", "latex", "csv", "json")
"""Those that ``--by`` goes with."""
FORMATS_BY: Final = {"csv": "kgbench.reports.formats:print_csv"}
"""What does it where ``--by`` asks for a table."""

FOLDERS: Final = {
    "kernelbench": "kgbench.reports.export.kernelbench:files",
    "backendbench": "kgbench.reports.export.backendbench:files",
    "kgb": "kgbench.reports.export.kernelgenbench:files",
}
"""Of the formats that are several files a function of the report: text by path below the folder of ``--to``."""

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
html_option = click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="Write a page that opens offline, in place of the table.",
)
by_option = click.option(
    "--by",
    type=click.Choice(["source", "category", "problem", "kind", "model"]),
    help="One row for each of these in place of each source, in table, md, latex, csv and json; CSV is then that "
    "table, and not a row per case.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on stdout in place of the table.")


@click.command(short_help="Print the table of a stored run again.")
@click.argument("run", metavar="RUN", shell_complete=complete_run)
@out_option
@fast_at_option
@by_option
@format_option
@json_option
@cite_option
@to_option
@html_option
@fail_under_option
def report(
    run: str,
    out: Path,
    fast_at: str,
    by: str | None,
    form: str,
    as_json: bool,
    cite: bool,
    to: Path | None,
    html: Path | None,
    fail_under: str,
) -> None:
    """Print the table of a stored run again.

    With --html it is a page with every sample's code, verdict and times (docs/page.md).

    RUN is its folder, the begin of its id, or last. A run that was interrupted or killed is read as far as it came.
    """
    from kgbench.scores.bounds import parse_bounds
    from kgbench.store.find import find_run

    values, bounds = thresholds(fast_at), parse_bounds(fail_under)
    form = _one_form(form, as_json=as_json, cite=cite, by=by, to=to, html=html)
    path = find_run(run, out)
    found = write_html(path, values, html) if html else print_run(path, values, form=form, by=by, to=to)
    sys.exit(int(breaks(found, bounds)))


def _one_form(form: str, *, as_json: bool, cite: bool, by: str | None, to: Path | None, html: Path | None) -> str:
    """The format that is meant. Raises UsageError where options ask for two reports, or for one that there is not."""
    asked = {"--html": html, "--json": as_json, "--cite": cite, f"--format {form}": form != "table"}
    named = one_report(asked)
    form = "json" if as_json else "cite" if cite else form
    wrong = ""
    if html and (by or to):
        wrong = f"--html is a whole page and names its file itself; leave {'--by' if by else '--to'} out"
    elif by and form not in BY_FORMATS:
        wrong = f"{named} has no table for --by to make; take --format {', '.join(BY_FORMATS)}"
    if wrong:
        raise UsageError("KGB190", wrong)
    return form


def one_report(asked: Mapping[str, object]) -> str:
    """The option that is given, of those that each ask for another report. Raises UsageError where two are."""
    named = [option for option, given in asked.items() if given]
    if len(named) > 1:
        raise UsageError("KGB190", f"{named[0]} and {named[1]} are two reports; ask for one at a time")
    return named[0] if named else ""


def breaks(report: Report, bounds: Sequence[Bound]) -> bool:
    """Says on stderr which bounds the run breaks; whether any. Raises UsageError."""
    from kgbench.scores.bounds import broken

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


def print_run(
    path: Path, values: tuple[float, ...], *, form: str, by: str | None = None, to: Path | None = None
) -> Report:
    """Prints a run in one of ``FORMATS`` on stdout, or writes it to a file or folder. Raises StoreError, UsageError."""
    from kgbench.reports.model import report_of
    from kgbench.store.reader import read_run

    stored = read_run(path)
    found = report_of(stored, values, by=by)
    if by and form == "table" and found.suite is not None and found.suite.shares:
        words = f"--by {by}: the table of suite {found.suite.name} has a row per operator; leave --by out"
        raise UsageError("KGB190", words)
    if form not in ("table", "json"):  # which have them themselves
        say_notes(stored)
    if to is None:
        print_as(form, found)
    else:
        write_as(form, found, to)
    return found


def say_notes(stored: StoredRun, name: str = "") -> None:
    """On stderr what is missing of a run, or damaged."""
    for note in stored.notes:
        click.echo(f"kgbench: {name}{note}", err=True)


def write_html(path: Path, values: tuple[float, ...], html: Path) -> Report:
    """Writes a run as a page, and says how large it is. Raises StoreError, UsageError."""
    from kgbench.cli.verdict import repeat_command
    from kgbench.core.figures import size
    from kgbench.reports.page.document import write_page
    from kgbench.reports.page.source import page_source
    from kgbench.store.reader import read_run

    stored = read_run(path, with_windows=True)
    source = page_source(stored, lambda result: repeat_command(stored, result), values)
    written = write_page(source, html)
    folder = "; too much for one file, so keep the folder together" if written.is_folder else ""
    click.echo(f"{written.path}: {size(written.bytes)}{folder}")
    if not written.charts:
        words = "The page has its figures in tables only: for charts, pip install 'kgbench[page]' and write it again."
        click.echo(f"kgbench: {numbered('KGB618', words)}", err=True)
    return source.report


def print_as(form: str, found: Report) -> None:
    """Prints a report on stdout in one of ``FORMATS``: for programs in UTF-8, for a terminal in what it can show."""
    told = {"errors": "replace"}  # a dash must not end a run in an ASCII locale
    sys.stdout.reconfigure(**told if form == "table" else {**told, "encoding": "utf-8"})  # type: ignore[union-attr]
    _writer(form, found)(found, sys.stdout)


def write_as(form: str, found: Report, to: Path) -> None:
    """Writes a report in one of ``FORMATS``. Raises UsageError."""
    from kgbench.reports.export import folder

    if form in FOLDERS:
        folder.write(_named(FOLDERS[form])(found), to)
        return
    whole = io.BytesIO()  # so that a format that cannot be had leaves no empty file
    stream = io.TextIOWrapper(whole, encoding="utf-8", errors="replace", newline="")
    _writer(form, found)(found, stream)
    stream.flush()
    with folder.writable(to):
        to.write_bytes(whole.getvalue())


def _writer(form: str, found: Report) -> Callable[[Report, TextIO], None]:
    target = FORMATS_BY.get(form, FORMATS[form]) if found.by else FORMATS[form]
    return cast(Callable[["Report", TextIO], None], _named(target))


def _named(target: str) -> Callable[..., Any]:
    """``package.module:function``"""
    module, _, name = target.partition(":")
    return cast(Callable[..., Any], getattr(importlib.import_module(module), name))
