"""``kgbench compare``: runs side by side, paired by problem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kgbench.cli.completion import complete_run
from kgbench.cli.options import json_option, out_option
from kgbench.cli.report_output import say_notes
from kgbench.core.errors import UsageError, numbered

if TYPE_CHECKING:
    from rich.table import Table

    from kgbench.reports.comparison import Change, Comparison, Difference, Duel

_LISTED = 10
"""Most problems that are listed as won or as lost."""


@click.command(short_help="Two runs or more side by side: who is better, and where?")
@click.argument("runs", metavar="RUN RUN…", nargs=-1, required=True, shell_complete=complete_run)
@out_option
@click.option(
    "--anyway", is_flag=True, help="Compare even if the runs differ in what decides about correct or fast; only warn."
)
@click.option("--on", default="", metavar="MODEL", help="Compare only what was judged on this model of device.")
@json_option
def compare(runs: Sequence[str], out: Path, anyway: bool, on: str, as_json: bool) -> None:
    """Compare each run with the first, paired by problem.

    Differences have 95 % intervals of a paired bootstrap over problems and samples. Runs on another device, with other
    libraries, problem files or another policy are not compared; the differences are printed.
    """
    from rich.console import Console

    from kgbench.reports.comparison import Side
    from kgbench.reports.comparison import compare as compared
    from kgbench.store.by_device import on_device
    from kgbench.store.encoding import json_text
    from kgbench.store.find import find_run
    from kgbench.store.reader import read_run

    if len(runs) < 2:
        raise UsageError("KGB170", "give two runs or more, for example kgbench compare 2026-a1 last")
    sides = [Side.of(on_device(read_run(find_run(run, out)), on)) for run in runs]
    for side in sides:
        say_notes(side.run, f"{side.name}: ")
    found = [compared(sides[0], other) for other in sides[1:]]
    for each in found:
        _check(each, anyway=anyway)
    if as_json:
        click.echo(json_text([each.to_json() for each in found], indent=2))
        return
    console = Console(highlight=False)
    for each in found:
        _print(each, console)


def _check(found: Comparison, *, anyway: bool) -> None:
    """Print what differs. Raises UsageError where that decides and ``anyway`` is not given, or nothing is common."""
    if not found.duels:
        words = f"{found.first} and {found.second} have no problem in common; `kgbench report RUN` shows which each has"
        raise UsageError("KGB171", words)
    deciding = [each for each in found.differences if each.decides]
    if deciding and not anyway:
        lines = "".join(f"\n  {each}" for each in deciding)
        words = f"{found.first} and {found.second} differ in what decides:{lines}\nTo compare them anyway: --anyway"
        raise UsageError("KGB172", words)
    for each in found.differences:
        click.echo(f"kgbench: {numbered('KGB625', _words(each))}", err=True)


def _words(difference: Difference) -> str:
    return f"{'not comparable: ' if difference.decides else ''}the runs differ in {difference}"


def _print(found: Comparison, console: object) -> None:
    from rich.console import Console
    from rich.text import Text

    from kgbench.core.text import plain
    from kgbench.reports.terminal import print_line

    assert isinstance(console, Console)
    for name, run in (("first", found.first), ("second", found.second)):
        print_line(console, Text(plain(f"{name}:  {run}".replace("second:  ", "second: "))), indent=0)
    console.print()
    console.print(table(found.changes))
    console.print()
    for line in lines(found):
        print_line(console, Text(plain(line)), indent=0)


def table(changes: Sequence[Change]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from kgbench.core.figures import ABSENT

    made = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for head in ("score", "problems", "first", "second", "change", "95 %", ""):
        made.add_column(head, justify="left" if head in ("score", "") else "right", no_wrap=True)
    group = None
    for each in changes:
        if each.group != group:
            made.add_row(each.group)
            group = each.group
        values = (_figure(each, value) for value in (each.first, each.second))
        ends = f"[{_change(each, each.interval[0])}, {_change(each, each.interval[1])}]" if each.interval else ABSENT
        better = "" if not each.certain or each.change is None else "*"
        problems = str(each.problems)
        made.add_row(f"  {each.head.replace('where both are', 'both')}", problems, *values, _whole(each), ends, better)
    return made


def lines(found: Comparison) -> Iterable[str]:
    """Lines below the table."""
    from kgbench.core.text import number_of

    yield "* the interval excludes equality. Shares change by points, speedups by a factor."
    timed = {each.group for each in found.changes if each.score != "correct"}
    untimed = dict.fromkeys(each.group for each in found.changes if each.group not in timed)
    if untimed:
        yield f"No speed of {', '.join(untimed)}: not timed in both, or in Triton's interpreter, which has none."
    if found.only_first or found.only_second:
        left_out = f"{found.only_first} only in the first, {found.only_second} only in the second"
        yield f"Left out, since not in both: {left_out}."
    if found.not_counted:
        yield f"Left out, since one of the runs could not judge them: {number_of(found.not_counted, 'problem')}."
    for name, words in zip(("first", "second"), found.problem_sets, strict=True):
        yield f"{name}: {words}"
    wins = {who: [each for each in found.duels if each.winner == who] for who in ("first", "second", "neither")}
    counts = ", ".join(f"{who} {len(won)}" for who, won in wins.items())
    yield f"who wins a problem (more samples correct, then faster beyond the clock's noise): {counts}"
    for who in ("first", "second"):
        yield from _won(who, wins[who])


def _won(who: str, won: Sequence[Duel]) -> Iterable[str]:
    for each in won[:_LISTED]:
        yield f"  {who} wins {each.problem}: {each.why}"
    if len(won) > _LISTED:
        yield f"  and {len(won) - _LISTED} more; --json has all"


def _figure(change: Change, value: float | None) -> str:
    from kgbench.core.figures import ABSENT, percent, ratio_text

    if value is None:
        return ABSENT
    return f"{ratio_text(value)}x" if change.is_ratio else percent(value)


def _whole(change: Change) -> str:
    from kgbench.core.figures import ABSENT

    return ABSENT if change.change is None else _change(change, change.change)


def _change(change: Change, value: float) -> str:
    from kgbench.core.figures import ratio_text

    return f"×{ratio_text(value)}" if change.is_ratio else f"{100 * value:+.1f}"
