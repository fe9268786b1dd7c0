"""``kgbench verify``: measures a run's winners again, with inputs from new seeds."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from kgbench.cli.again import chosen, jobs_of, measure
from kgbench.cli.completion import complete_run
from kgbench.cli.options import (
    check_machine,
    device_option,
    json_option,
    out_option,
    problems_option,
    source_option,
)
from kgbench.cli.record_claims import check_records, enter_records
from kgbench.core.errors import UsageError, shown_path


@click.command(short_help="Measure a run's winners once more, with new seeds.")
@click.argument("run", metavar="RUN", shell_complete=complete_run)
@source_option
@problems_option
@click.option("--top", type=click.IntRange(min=1), metavar="N", help="Only the N fastest.  [default: all winners]")
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Candidates that are prepared at once.")
@click.option(
    "--records",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Enter what is faster than the device's records into DIR, such as results/records.",
)
@out_option
@device_option
@json_option
def verify(
    run: str,
    sources: tuple[str, ...],
    globs: tuple[str, ...],
    top: int | None,
    jobs: int | None,
    records: Path | None,
    out: Path,
    device: str,
    as_json: bool,
) -> None:
    """Measure a run's winners again, with new seeds.

    Winners are correct and faster than the library by their interval. Their stored candidates are judged and timed
    again. The results are appended to verification.jsonl in the run's folder, and `kgbench report` shows both; the
    run's own results are not changed. With --records, winners that hold and are faster than the device's records
    (docs/published.md) become records, if nothing else ran on the device. Exit code 1: a winner is no longer correct,
    or not faster.
    """
    from kgbench.reports.model import report_of
    from kgbench.store import verification
    from kgbench.store.encoding import json_text
    from kgbench.store.find import find_run
    from kgbench.store.reader import read_run

    stored = read_run(find_run(run, out))
    won = verification.winners(chosen(stored, report_of(stored).results, sources, globs), top)
    if not won:
        of_these = " among these problems" if sources or globs else ""
        words = f"{shown_path(stored.path)} has no winner{of_these}: nothing is correct and faster than the library"
        raise UsageError("KGB160", words)
    if records is not None:
        check_records(stored, records)
    check_machine()
    wanted = jobs_of(stored, won)
    measured = measure(stored, [job for _, job in wanted], device, jobs or 0, verification.FILE, lambda words: None)
    again, notes = verification.read(stored.path)
    found = verification.verified([result for result, _ in wanted], again)
    if as_json:
        click.echo(json_text(verification.summary(found), indent=2))
    else:
        for line in [*verification.lines(found, len(won)), *notes]:
            click.echo(line)
    if records is not None and measured is not None:
        enter_records(stored, [each.again for each in found if each.fast], measured, records)
    sys.exit(int(not all(each.fast for each in found)))
