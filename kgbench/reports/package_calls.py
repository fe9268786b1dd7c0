"""Calls of installed packages: how many of each operator's are correct, fail, are not offered, and how fast."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.table import Table

from kgbench.core.outcomes import Outcome
from kgbench.core.text import number_of
from kgbench.core.types import Result
from kgbench.reports.generated import bare_table
from kgbench.scores.speedups import speedup_of_correct


@dataclass(frozen=True)
class PackageCalls:
    """The calls of one operator that a package was given."""

    problem: str
    model: str
    correct: int
    failed: int
    not_offered: int
    outcome: str
    timed: int
    """Of the correct calls those whose times count: launch-bound ones only where all are."""
    speedup: float | None
    """Geometric mean over them of the library's time / the package's; None where none was timed."""


def package_calls(results: Iterable[Result]) -> tuple[PackageCalls, ...]:
    """One for each judged kernel of an installed package; those of which nothing was called are left out."""
    return tuple(_calls_of(result) for result in results if result.adapted and result.cases)


def _calls_of(result: Result) -> PackageCalls:
    outcomes = [case.outcome for case in result.cases if case.outcome is not Outcome.SKIPPED]
    correct, absent = outcomes.count(Outcome.PASSED), outcomes.count(Outcome.NOT_OFFERED)
    failed = len(outcomes) - correct - absent
    timed = None if result.interpreted else speedup_of_correct(result)
    count, speedup = (timed.count, timed.point) if timed else (0, None)
    return PackageCalls(result.problem, result.model, correct, failed, absent, str(result.outcome), count, speedup)


def package_table(rows: Sequence[PackageCalls]) -> Table:
    """One line per operator, those with most failed calls first."""
    table = bare_table("operator", "correct", "failed", "not offered", "timed")
    table.add_column("")
    for row in sorted(rows, key=lambda row: (-row.failed, row.problem)):
        speed = "" if row.speedup is None else f"{row.timed}, {row.speedup:.2f}x"
        table.add_row(row.problem, *map(str, (row.correct, row.failed, row.not_offered)), speed, row.outcome)
    return table


@dataclass(frozen=True)
class PackageSums:
    """The calls of all operators of a package."""

    operators: int
    correct: int
    failed: int
    not_offered: int
    without_failure: int
    """Operators of which no call fails."""
    timed: int
    """Operators of which a correct call was timed."""
    speedup: float | None
    """Geometric mean over them of their speedups where they are correct; None where none was timed."""

    @property
    def offered(self) -> int:
        return self.correct + self.failed


def package_sums(rows: Sequence[PackageCalls]) -> PackageSums:
    correct, failed, absent = (sum(getattr(row, name) for row in rows) for name in ("correct", "failed", "not_offered"))
    timed = [row.speedup for row in rows if row.speedup is not None]
    mean = statistics.geometric_mean(timed) if timed else None
    whole = sum(row.failed == 0 for row in rows)
    return PackageSums(len(rows), correct, failed, absent, whole, len(timed), mean)


def package_lines(rows: Sequence[PackageCalls]) -> Iterable[str]:
    """The sums; nothing where no package was judged."""
    if not rows:
        return
    sums = package_sums(rows)
    yield (
        f"calls of installed packages: {sums.correct} of {sums.offered} correct, "
        f"{sums.not_offered} not offered; "
        f"no call fails of {sums.without_failure} of {number_of(sums.operators, 'operator')}"
    )
