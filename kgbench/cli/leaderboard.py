"""``kgbench leaderboard``: all runs of a folder, ranked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgbench.cli.options import html_option, json_option, one_report
from kgbench.core.errors import UsageError
from kgbench.core.kinds import PolicyMode

if TYPE_CHECKING:
    from rich.table import Table

    from kgbench.reports.leaderboard import Board


@click.command(short_help="Rank all runs of a folder, per source and device.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False))
@json_option
@html_option
def leaderboard(folder: Path, as_json: bool, html: Path | None) -> None:
    """Rank all runs that lie in DIR or below: a table per device, library, source and version of its problems.

    The order is fast_1, then correct. Runs of a part of a source are listed without a rank.
    """
    from rich.console import Console
    from rich.text import Text

    from kgbench.core.text import plain
    from kgbench.reports.leaderboard import boards, read_reports
    from kgbench.reports.terminal import print_line
    from kgbench.store.encoding import json_text

    one_report({"--html": html, "--json": as_json})
    reports, notes = read_reports(folder)
    for note in notes:
        click.echo(f"kgbench: {note}", err=True)
    found = boards(reports)
    if not found:
        words = f"{folder}: no run that can be ranked lies here or below; `kgbench run --out {folder}` puts one there"
        raise UsageError("KGB174", words)
    if html:
        from kgbench.core.figures import size
        from kgbench.reports.page.ranking import write_leaderboard

        click.echo(f"{html}: {size(write_leaderboard(found, html))}")
        return
    if as_json:
        click.echo(json_text([board.to_json() for board in found], indent=2))
        return
    console = Console(highlight=False)
    for board in found:
        parts = (board.device, board.source, board.library)
        print_line(console, Text(plain(", ".join(filter(None, parts))), style="bold"), indent=0)
        print_line(console, Text(plain(str(board.problem_set))), indent=0)
        console.print(table(board))
        console.print()
    words = (
        "Below a score: 95 % bootstrap interval over problems and samples. Kind compute. No rank: a part of a source."
    )
    print_line(console, Text(words), indent=0)


def table(board: Board) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from kgbench.core.figures import ABSENT
    from kgbench.core.text import plain
    from kgbench.reports.score_tables import ranking_cells, ranking_columns

    made = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    scores = ranking_columns([entry.row for entry in board.entries])
    for head in ("#", "model", "problems", *(each.head for each in scores), "begun"):
        made.add_column(head, justify="left" if head in ("model", "begun") else "right", no_wrap=head != "model")
    for entry in board.entries:
        problems = str(entry.row.problems)
        row = entry.row
        if row.is_subset():
            problems += f"\nof {row.declared}"
        # The policy is said where it is not the default.
        model = entry.model + (f", policy {entry.policy}" if entry.policy not in ("", PolicyMode.STRICT) else "")
        cells = map("\n".join, ranking_cells(row, scores))
        when = f"{entry.date}\n{entry.run.rpartition('-')[2]}{f', {entry.unfinished}' if entry.unfinished else ''}"
        made.add_row(str(entry.rank or ABSENT), plain(model), problems, *cells, when)
    return made
