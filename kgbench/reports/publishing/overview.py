"""The first screen of RESULTS.md: all published runs side by side, what others have published, and what goes wrong."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from kgbench.core.figures import ABSENT, percent, ratio_text
from kgbench.core.kinds import Phase
from kgbench.core.types import Result, first_failure
from kgbench.reports.columns import TIMES, score_column
from kgbench.reports.markdown import table
from kgbench.reports.model import Report
from kgbench.reports.package_calls import package_sums
from kgbench.reports.publishing.checks import renewed
from kgbench.reports.slow_libraries import SLOW, slow_libraries
from kgbench.scores.table import score_of
from kgbench.store.reader import StoredRun

PEERS: Final = "peers.toml"
"""File below ``results/`` with what other benchmarks have published."""
_SCORES: Final = (
    "correct", "fast_1", "fast_1 (best library)", "speedup", "speedup (best library)",
    "sol_50", "sol_50 (library)", "sol_80", "sol_80 (library)",
)  # fmt: skip
"""Names of the scores of the first screen."""
_OF_ROUNDS: Final = ("correct", "fast_1", "speedup")
"""Names of the scores of each round."""
_WHERE: Final = {
    Phase.CHECK: "a fixed call",
    Phase.OPINFO: "a call of PyTorch's own tests",
    Phase.LARGE: "a size or an offset beyond 16 or 32 bits",
    Phase.FUZZ: "a random call",
    Phase.BENCH: "a timed call",
}


def as_rounds(earlier: StoredRun, later: StoredRun) -> StoredRun:
    """Two runs as one of two rounds: the later one's kernels follow those of the same problems in the earlier one.

    Of a problem whose file has changed in between, only the later one's kernel counts.
    """
    moved = 1 + max((result.round for result in earlier.results), default=0)
    models = {result.problem: result.model for result in earlier.results}
    changed = set(renewed(later.info, earlier.info))
    more = [
        replace(result, round=result.round + moved, model=models.get(result.problem, result.model))
        for result in later.results
    ]
    still = [result for result in earlier.results if result.problem not in changed]
    return replace(earlier, results=(*still, *more), info=_with_changed(earlier.info, later.info, changed))


def _with_changed(info: Mapping[str, Any], later: Mapping[str, Any], changed: Collection[str]) -> dict[str, Any]:
    """run.json of the earlier run with what the later one says of the problems whose files have changed."""
    new = {each["id"]: each for each in later.get("problems", ()) if each["id"] in changed}
    least = {problem: cases for problem, cases in (later.get("least_us") or {}).items() if problem in changed}
    return {
        **info,
        "problems": [new.get(each["id"], each) for each in info.get("problems", ())],
        "least_us": {**(info.get("least_us") or {}), **least},
    }


def overview(reports: Iterable[tuple[str, Report]], first: str = "kernels") -> Iterator[str]:
    """A table with a row per run and source, problems of kind compute alone; ``first`` is the first column's head."""
    rows = [
        (name, row) for name, report in reports for row in (*report.rows, *report.overall) if row.kinds == "compute"
    ]
    known = {score for _, row in rows for score in row.values}
    shown = [score for score in map(score_of, _SCORES) if not score.optional or score.name in known]
    columns = [score_column(score, score.head) for score in shown]
    heads = [first, "problems of kind compute", *(column.head for column in columns)]
    lines = ([name, f"{row.source}, {row.problems}", *(column.cell(row) for column in columns)] for name, row in rows)
    return table(heads, lines, "ll" + "r" * len(columns))


def called(reports: Iterable[tuple[str, Report]]) -> Iterator[str]:
    """A table with a row per package: how its calls ended, since one that fails makes its operator not correct."""
    heads = ["package", "operators called", "calls correct", "calls not offered", "operators without a failing call"]
    lines = []
    for name, report in reports:
        sums = package_sums(report.package_calls)
        share = percent(sums.correct / max(sums.offered, 1))
        mean = ABSENT if sums.speedup is None else f"{ratio_text(sums.speedup)}{TIMES}, of {sums.timed} operators"
        calls = f"{sums.correct:,} of {sums.offered:,}, {share}"
        lines.append([name, sums.operators, calls, sums.not_offered, sums.without_failure, mean])
    return table([*heads, "speedup of correct calls"], lines, "lrrrrr")


def round_by_round(rounds: Iterable[tuple[str, int, Report]]) -> Iterator[str]:
    """A table with a row per round, the best kernel so far of each problem of kind compute.

    ``rounds``: the name of each, the kernels that were judged in it, and the report of all rounds so far.
    """
    columns = [score_column(score, score.head) for score in map(score_of, _OF_ROUNDS)]
    heads: list[str] = []
    lines = []
    for number, (name, judged, report) in enumerate(rounds, 1):
        rows = [row for row in (*report.overall[:1], *report.rows) if row.kinds == "compute"]
        heads = [f"{column.head}, {row.source}" for column in columns for row in rows]
        lines.append([f"{number}, {name}", judged, *(column.point(row) for column in columns for row in rows)])
    return table(["round", "kernels judged", *heads], lines, "lr" + "r" * len(heads))


def peers(results: Path) -> Iterator[str]:
    """What other benchmarks have published, and why digits cannot be compared. Raises OSError, ValueError."""
    file = results / PEERS
    for peer in tomllib.loads(file.read_text(encoding="utf-8"))["peer"] if file.is_file() else ():
        yield f"Published by [{peer['name']}]({peer['url']}) ({peer['where']}; {peer['device']}): correct, speedup."
        yield ""
        sources = peer["sources"]
        yield from table(["method", *sources], map(_peers_row, peer["methods"]), "l" + "r" * len(sources))
        yield ""
        yield from (f"- {difference}" for difference in peer["differences"])


def _peers_row(method: dict[str, Any]) -> list[str]:
    pairs = zip(method["correct"], method["speedup"], strict=True)
    return [method["name"], *(f"{correct} %, {ratio_text(ratio)}{TIMES}" for correct, ratio in pairs)]


def failures(results: Sequence[Result]) -> Iterator[str]:
    """Kernels that are not correct, by outcome and by the kind of call that showed it first."""
    classes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for result in results:
        if result.outcome.is_failure:
            case = first_failure(result)
            classes[str(result.outcome), _WHERE[Phase(case.phase)] if case else ABSENT].append(result.problem)
    found = sorted(classes.items(), key=lambda each: (-len(each[1]), each[0]))
    lines = ([*names, len(problems), ", ".join(sorted(problems))] for names, problems in found)
    return table(["not correct", "shown first by", "kernels", "problems"], lines, "llrl") if found else iter(())


def weak_libraries(results: Sequence[Result]) -> Iterator[str]:
    """Problems whose library a kernel beats so clearly that the speedup says more about the library."""
    if found := slow_libraries(results):
        yield f"At least {SLOW:g} times as fast as the library, which says that the library is weak there:"
        yield ""
        lines = ([each.problem, f"{ratio_text(each.speedup.point)}{TIMES}", each.why or ABSENT] for each in found)
        yield from table(["problem", "speedup", "why the library is slow"], lines, "lrl")
