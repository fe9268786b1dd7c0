"""The first view of a page as data: the run's facts, headline numbers, charts, and a line for every problem."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, Final

from kgbench.core.figures import ABSENT, percent, ratio_text
from kgbench.core.outcomes import Group, Outcome
from kgbench.reports.columns import Column, columns_in
from kgbench.reports.footnotes import closing_lines
from kgbench.reports.page import charts
from kgbench.reports.page.source import PageSource, shown
from kgbench.reports.words import device_words, problem_set_words
from kgbench.scores.per_problem import ProblemScores, problem_scores
from kgbench.scores.rows import Row
from kgbench.scores.samples import Selected
from kgbench.scores.score import Place
from kgbench.scores.speedups import Estimate, speedup

NOT_EVALUATED: Final = "not evaluated"


def overview(source: PageSource) -> dict[str, Any]:
    found = source.report
    each = problem_scores(source.run.info, found.selected, found.attempts)
    return {
        "run": {"id": str(source.run.info.get("id", "")), "model": shown(str(source.run.info.get("model", "")))},
        "problem_set": shown(problem_set_words(found.info)),
        "facts": [[name, shown(text)] for name, text in _facts(source) if text],
        "notes": [shown(note) for note in found.notes],
        "lines": [shown(line) for line in closing_lines(found) if line],
        "headline": [_headline(row) for row in (*found.overall, *found.rows)],
        "charts": [chart for chart in _charts(source) if chart],
        "templates": {"cases": charts.times_of_cases(), "samples": charts.timing_samples()},
        "groups": {**{str(outcome): outcome.facts.group for outcome in Outcome}, NOT_EVALUATED: Group.NONE},
        "group_order": list(Group),
        "problems": list(map(_line, [source] * len(found.selected), found.selected, each)),
    }


def _facts(source: PageSource) -> Iterator[tuple[str, str]]:
    info = source.run.info
    device, machine = info.get("device") or {}, info.get("machine") or {}
    yield "run", str(info.get("id", ""))
    yield "model", str(info.get("model", ""))
    yield "begun, ended", f"{info.get('started') or ABSENT}, {info.get('finished') or ABSENT} ({info.get('status')})"
    yield "command", shlex.join(map(str, info.get("command") or ()))
    yield "device", device_words(device)
    yield "driver", str(device.get("driver") or "")
    yield "peaks", _peaks(device.get("peaks") or {})
    yield "machine", ", ".join(f"{name} {value}" for name, value in machine.items() if value)
    versions = {"kgbench": info.get("kgbench"), **(info.get("packages") or {}), **(device.get("versions") or {})}
    yield "versions", ", ".join(f"{name} {version}" for name, version in versions.items() if version)
    yield "sandbox", "; ".join(f"{name} {state}" for name, state in (device.get("sandbox") or {}).items())


def _peaks(peaks: dict[str, Any]) -> str:
    if not peaks:
        return ""
    flops = (f"{name} {value:,} GFLOP/s" for name, value in peaks["gflop_per_s"].items())
    return ", ".join((f"{peaks['gb_per_s']:,} GB/s", *flops))


def _headline(row: Row) -> dict[str, Any]:
    notes = [f"subset {row.selected} of {row.declared}"] * row.is_subset() + ["agent not confined"] * bool(
        row.unconfined
    )
    figures = [[column.head, column.point(row), _interval(column, row)] for column in columns_in(Place.PAGE, [row])]
    title = f"{row.source}, {row.kinds}"
    return {"title": title, "note": ", ".join(notes), "problems": row.problems, "figures": figures}


def _interval(column: Column[Row], row: Row) -> str:
    """The bootstrap interval, of a share in percents; empty where there is none."""
    ends = column.ends(row) if column.ends else None
    if ends is None:
        return ""
    low, high = (f"{100 * end:.1f}" if column.words is percent else ratio_text(end) for end in ends)
    return f"[{low}, {high}]"


def _charts(source: PageSource) -> Iterator[dict[str, Any] | None]:
    found = source.report
    if not any(row.speedup for row in found.rows):
        return
    yield charts.fast_p_curves(charts.curve_rows(found.selected, found.attempts))
    by_source: dict[str, list[Estimate]] = {}
    for result in found.results:
        estimate = None if result.interpreted else speedup(result)
        if estimate:
            by_source.setdefault(result.problem.partition("/")[0], []).append(estimate)
    yield charts.speedup_distribution(by_source)


def _line(source: PageSource, selected: Selected, found: ProblemScores) -> dict[str, Any]:
    """One problem: what became of its samples, and how fast the correct ones are."""
    results = source.best_of(selected.id)
    outcomes = [str(result.outcome) for result in results]
    best = found.best
    return {
        "id": selected.id,
        "source": selected.source,
        "kind": found.kind,
        "category": found.category,
        "outcomes": outcomes + [NOT_EVALUATED] * (found.samples - len(outcomes)),
        "correct": found.correct,
        "best": [best.point, best.low, best.high] if best else None,
        "median": found.median,
        "spread": found.spread,
        "roofline": found.roofline,
        "against": next((result.library.name for result in results if result.library), ""),
        "helped": any(not each.allowed for result in results for each in result.evidence),
    }
