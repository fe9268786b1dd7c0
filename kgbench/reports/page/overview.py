"""The first view of a page as data: the run's facts, headline numbers, charts, and a line for every problem."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any, Final

from kgbench.core.figures import ABSENT, dollars, percent, ratio_text
from kgbench.core.outcomes import Group, Outcome
from kgbench.reports.columns import usd_per_solved
from kgbench.reports.footnotes import closing_lines
from kgbench.reports.page import charts
from kgbench.reports.page.source import PageSource, shown
from kgbench.reports.words import device_words, problem_set_words
from kgbench.scores.bootstrap import OVER_ALL, SPEEDUP
from kgbench.scores.per_problem import ProblemScores, problem_scores
from kgbench.scores.rows import Row
from kgbench.scores.samples import Selected
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
    fast = row.fast_at(1.0)
    notes = [f"subset {row.selected} of {row.declared}"] * row.is_subset() + ["agent not confined"] * bool(
        row.unconfined
    )
    point = row.speedup.point if row.speedup else None
    figures = [
        ["correct", percent(row.share_correct()), _shares(row, "correct")],
        ["fast_1", percent(fast.interval if fast else None), _shares(row, "fast_1")],
        ["fast_1 (point)", percent(fast.point if fast else None), _shares(row, "fast_1 (point)")],
        ["geometric mean", _ratio(point), _ratios(row, SPEEDUP)],
        ["over all", _ratio(row.speedup_over_all), _ratios(row, OVER_ALL)],
    ]
    if row.at_k:
        most = row.at_k[-1]
        figures.append([f"pass@{most.k}", percent(most.correct), _shares(row, f"pass@{most.k}")])
    usd = usd_per_solved(row)
    if usd is not None:
        figures.append(["per solved problem", dollars(usd), ""])
    if row.fallback_speedup:
        figures.append(["against fallback", _ratio(row.fallback_speedup.point), ""])
    title = f"{row.source}, {row.kinds}"
    return {"title": title, "note": ", ".join(notes), "problems": row.problems, "figures": figures}


def _shares(row: Row, name: str) -> str:
    """The bootstrap interval of a share; empty where there is none."""
    ends = row.intervals.get(name)
    return f"[{100 * ends[0]:.1f}, {100 * ends[1]:.1f}]" if ends else ""


def _ratios(row: Row, name: str) -> str:
    ends = row.intervals.get(name)
    return f"[{ratio_text(ends[0])}, {ratio_text(ends[1])}]" if ends else ""


def _ratio(value: float | None) -> str:
    return ABSENT if value is None else f"{ratio_text(value)}x"


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
    """One problem: what became of its samples, and how fast the right ones are."""
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
