"""A run as a person reads it: failures, a table per source, and what was true of the machine.

Text that a candidate had a hand in (reasons, logs, values) is printed without control characters and never as markup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, TextIO

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kgbench.core.errors import shown_path
from kgbench.core.outcomes import Blame, Listed, Outcome
from kgbench.core.text import plain, shortened
from kgbench.core.types import Result
from kgbench.reports.footnotes import closing_lines, run_lines
from kgbench.reports.generated import cost_table, samples_table
from kgbench.reports.model import Report
from kgbench.reports.package_calls import package_table
from kgbench.reports.score_tables import rounds_table, terminal_tables, threshold_table
from kgbench.reports.suite import suite_lines, suite_table
from kgbench.reports.words import failure_words, last_words, no_candidate_words, numbered_as

MOST_LISTED: Final = 12
"""Problems in a line of a terminal; elsewhere a line has all, so that it can be searched."""


def print_table(report: Report, stream: TextIO) -> None:
    """For a terminal, in colours where it has them."""
    print_report(report, Console(file=stream, highlight=False))


def print_report(report: Report, console: Console) -> None:
    """Failures first, then the table, then the footnotes."""
    _print_failures(report, console)
    if report.suite is not None and report.suite.shares:
        console.print(suite_table(report.suite, report.suite_rows))
        console.print()
        for line in (*suite_lines(report.suite, report.suite_rows), *run_lines(report)):
            print_line(console, Text(plain(line)), indent=0)
        return
    if report.rows:
        for table in terminal_tables(report):
            console.print(table)
            console.print()
        for table in _further_tables(report):
            console.print(table)
            console.print()
    for line in closing_lines(report):
        print_line(console, Text(plain(line)), indent=0)


def _further_tables(report: Report) -> Iterable[Table]:
    if any(row.speedup for row in report.rows):
        yield threshold_table(report.rows)
    if any(row.at_k for row in report.rows):
        yield samples_table(report.rows)
    if report.package_calls:
        yield package_table(report.package_calls)
    if report.after_rounds:
        yield rounds_table(report.after_rounds)
    if report.cost:
        yield cost_table(report.rows, report.cost)


def _print_failures(report: Report, console: Console) -> None:
    results = report.results
    each = [result for result in results if result.outcome.facts.listed is Listed.EACH]
    failures = [result for result in each if result.outcome.facts.blames is not Blame.HARNESS]
    errors = [result for result in each if result.outcome.facts.blames is Blame.HARNESS]
    by_reason = [outcome for outcome in Outcome if outcome.facts.listed is Listed.BY_REASON]
    if failures:
        console.print("Not correct", style="bold")
    for result in failures:
        _print_failure(result, console)
    for outcome in by_reason:
        _print_listed(outcome, [result for result in results if result.outcome is outcome], console)
    none = no_candidate_words(results)
    if none:
        lists = f"kgbench report {shown_path(report.where)} --by problem lists them"
        print_line(console, Text(f"{none} ({lists})", style="yellow"), indent=2)
    if errors:
        console.print("Harness errors: kgbench failed here, not the candidate. Please report them.", style="bold")
    for result in errors:
        _print_failure(result, console)
    if failures or errors or none or any(result.outcome in by_reason for result in results):
        console.print()


def _print_failure(result: Result, console: Console) -> None:
    head = Text(f"{plain(result.problem)}{numbered_as(result.sample, result.round)}  ").append(
        str(result.outcome), style="red"
    )
    print_line(console, head, indent=2)
    for line in failure_words(result):
        print_line(console, Text(plain(line)), indent=6)
    if result.outcome.facts.log_says_more:
        for line in last_words(result.log_tail):
            print_line(console, Text(f"| {shortened(plain(line), 200)}", style="dim"), indent=6)


def _print_listed(outcome: Outcome, results: Sequence[Result], console: Console) -> None:
    """Outcomes in which nothing ran: the problems by reason, each with how many of its samples."""
    by_reason: dict[str, Counter[str]] = {}
    for result in results:
        by_reason.setdefault(plain(result.reason), Counter())[result.problem] += 1
    for reason, counts in by_reason.items():
        problems = [f"{problem} ({count} times)" if count > 1 else problem for problem, count in counts.items()]
        if console.is_terminal and len(problems) > MOST_LISTED:
            problems[MOST_LISTED:] = [f"and {len(problems) - MOST_LISTED} more; --by problem has all"]
        head = Text(str(outcome), style="yellow").append(f"{f' ({reason})' if reason else ''}: ", style="default")
        print_line(console, head.append(plain(", ".join(problems)), style="default"), indent=2)


def print_line(console: Console, text: Text, *, indent: int) -> None:
    """Wrapped on a terminal; whole lines elsewhere, so that they can be searched."""
    if console.is_terminal:
        console.print(Padding(text, (0, 0, 0, indent)))
    else:
        console.print(Text(" " * indent).append_text(text), soft_wrap=True)
