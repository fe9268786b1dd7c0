"""``kgbench reproduce``: judges all stored candidates of a run again, and prints what changed."""

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
from kgbench.core.errors import UsageError, shown_path


@click.command(short_help="Judge a run's stored candidates again.")
@click.argument("run", metavar="RUN", shell_complete=complete_run)
@source_option
@problems_option
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Candidates that are prepared at once.")
@out_option
@device_option
@json_option
def reproduce(
    run: str,
    sources: tuple[str, ...],
    globs: tuple[str, ...],
    jobs: int | None,
    out: Path,
    device: str,
    as_json: bool,
) -> None:
    """Judge a run's stored candidates again.

    All of them, or those of some problems, of every sample and round, with new seeds and the run's own policy and
    deadlines. Printed is what differs in the machine, then outcomes that changed, then speedups that left the interval
    which the run gave them. What was found is appended to reproduction.jsonl in the run's folder; the run's own results
    stay as they are. Exit code 1: an outcome changed, or more than 5 % of the speedups left their interval.
    """
    from kgbench.reports import reproduction
    from kgbench.reports.model import report_of
    from kgbench.scores.samples import is_submitted
    from kgbench.store import verification
    from kgbench.store.encoding import json_text
    from kgbench.store.find import find_run
    from kgbench.store.reader import read_run

    stored = read_run(find_run(run, out))
    attempts = chosen(stored, report_of(stored).attempts, sources, globs)
    results = [result for result in attempts if is_submitted(result)]
    wanted = jobs_of(stored, results)
    if not wanted:
        raise UsageError(
            "KGB189",
            f"{shown_path(stored.path)} has no candidate that can be judged again: its folder must be whole, and of "
            "baseline and reference none is stored (run them once more, and compare)",
        )
    check_machine()
    differences: list[str] = []
    measure(stored, [job for _, job in wanted], device, jobs or 0, reproduction.FILE, differences.append)
    again, notes = verification.read(stored.path, reproduction.FILE)
    found = reproduction.reproduced([result for result, _ in wanted], again)
    if as_json:
        click.echo(json_text(reproduction.summary(found, differences, len(results)), indent=2))
    else:
        for line in [*reproduction.lines(found, differences, len(results)), *notes]:
            click.echo(line)
    sys.exit(int(not reproduction.holds(found)))
