"""A stored run printed, or written to files, in one of the formats; and the bounds it breaks."""

from __future__ import annotations

import importlib
import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

import click

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
"""Functions that write a report, by the name of ``--format``; each takes the report and a text stream.

One that writes bytes takes the stream's ``buffer``.
"""
FORMATS_BY: Final = {"csv": "kgbench.reports.formats:print_csv"}
"""The functions used instead where ``--by`` asks for a table."""
FOLDERS: Final = {
    "kernelbench": "kgbench.reports.export.kernelbench:files",
    "backendbench": "kgbench.reports.export.backendbench:files",
    "kgb": "kgbench.reports.export.kernelgenbench:files",
}
"""Formats that are several files, each a function of the report that returns text by path below ``--to``."""


def breaks(reports: Sequence[Report], bounds: Sequence[Bound]) -> bool:
    """Print on stderr which bounds the run breaks. Returns whether it breaks any. Raises UsageError."""
    from kgbench.scores.bounds import broken

    lines = [line for report in reports for line in broken(bounds, report.selected, report.results)]
    for line in lines:
        click.echo(f"kgbench: {numbered('KGB602', line)}", err=True)
    return bool(lines)


def print_run(
    path: Path,
    values: tuple[float, ...],
    *,
    form: str,
    by: str | None = None,
    to: Path | None = None,
    on: str = "",
    libraries: Sequence[Path] = (),
) -> tuple[Report, ...]:
    """Prints a run in one of ``FORMATS`` on stdout, or writes it to a file or folder. Raises StoreError, UsageError.

    ``on`` is a model of device. Without one a run of several has a table for each, and a list in JSON; other formats
    are of one run alone. ``libraries`` are folders of packages' runs that it is compared with.
    """
    from kgbench.store.by_device import by_device, on_device
    from kgbench.store.reader import read_run

    stored, others = read_run(path), [read_run(each) for each in libraries]
    parts = by_device(stored) if form in ("table", "json") and not on and to is None else (on_device(stored, on),)
    listed = form == "json" and len(parts) > 1
    click.echo("[" * listed, nl=False)
    reports = []
    for number, part in enumerate(parts):
        click.echo("," * (listed and number > 0), nl=False)
        reports.append(_print_part(part, values, form, by, to, others))
    click.echo("]\n" * listed, nl=False)
    return tuple(reports)


def _print_part(
    stored: StoredRun,
    values: tuple[float, ...],
    form: str,
    by: str | None,
    to: Path | None,
    libraries: Sequence[StoredRun],
) -> Report:
    from kgbench.core.paths import records_dir
    from kgbench.reports.best_library import beside
    from kgbench.reports.model import report_of

    usable = beside(stored.info, libraries)
    if strange := [str(each.path) for each in libraries if each not in usable]:
        words = f"--best-library {strange[0]}: no run of an installed package on the GPU of {stored.path}"
        raise UsageError("KGB190", words)
    found = report_of(stored, values, by=by, records=records_dir(), libraries=usable)
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
    """Print on stderr what of a run is missing or damaged."""
    for note in stored.notes:
        click.echo(f"kgbench: {name}{note}", err=True)


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
