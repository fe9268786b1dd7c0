"""The charts as Vega-Lite specifications without colours of their own: those come with the reader's theme.

``columns`` are the table below a chart: every figure that is drawn can also be read.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kgbench.core.types import Result
from kgbench.scores import rows as scores
from kgbench.scores.rows import Row
from kgbench.scores.samples import Selected
from kgbench.scores.speedups import Estimate

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
"""The schema's name; nothing is downloaded from this address."""
SIDES: Final = ("library", "candidate", "roofline")
CURVE: Final = tuple(sorted({round(2 ** (step / 8), 4) for step in range(-24, 25)}))
"""p from 1/8 to 8."""
BIN: Final = 0.25
"""Width of a bar of the distribution, in powers of two."""


def fast_p_curves(source_rows: Sequence[Row]) -> dict[str, Any] | None:
    """Of the rows of kind compute over ``CURVE``; None where speed means nothing."""
    values = [
        {"source": row.source, "p": fast.p, "share": fast.interval, "point": fast.point}
        for row in source_rows
        if row.kinds == "compute"
        for fast in row.fast
        if fast.interval is not None
    ]
    if not values:
        return None
    sources = list(dict.fromkeys(str(value["source"]) for value in values))
    x: dict[str, Any] = {"field": "p", "type": "quantitative", "title": "p (times the library)"}
    x["scale"] = {"type": "log", "base": 2, "domain": [CURVE[0], CURVE[-1]], "nice": False}
    x["axis"] = {"values": [0.125, 0.25, 0.5, 1, 2, 4, 8], "format": "~g"}
    y: dict[str, Any] = {"field": "share", "type": "quantitative", "title": "fast_p", "scale": {"domain": [0, 1]}}
    y["axis"] = {"format": ".0%"}
    lines = {
        "mark": {"type": "line", "interpolate": "step-before"},
        "encoding": {
            "x": x,
            "y": y,
            "color": _by("source", sources),
            "strokeDash": _by("source", sources),
            "tooltip": _tips("source", "p", "share"),
        },
    }
    return {
        "id": "fast-p",
        "title": "fast_p over p",
        "text": "Share of all problems of kind compute whose kernel is correct and, by the lower end of its interval, "
        "more than p times as fast as the library.",
        "spec": _spec("fast_p over p, one line per source", values, [lines, _at_one("x")], 280),
        "columns": [["source", "source"], ["p", "p"], ["share", "fast_p"], ["point", "fast_p (point)"]],
    }


def speedup_distribution(estimates: Mapping[str, Sequence[Estimate]]) -> dict[str, Any] | None:
    """``estimates``: by source, of correct samples against the library."""
    values = [bar for source, of_source in estimates.items() for bar in _bars(source, of_source)]
    if not values:
        return None
    x: dict[str, Any] = {
        "field": "low",
        "type": "quantitative",
        "title": "speedup against the library",
        "bin": {"binned": True},
    }
    ends = [min(0.5, *(bar["low"] for bar in values)), max(2.0, *(bar["high"] for bar in values))]
    x["scale"] = {"type": "log", "base": 2, "nice": False, "domain": ends}
    x["axis"] = {"format": "~g", "tickCount": 8}
    encoding: dict[str, Any] = {"x": x, "x2": {"field": "high"}, "y": _count("correct samples", values)}
    encoding["color"] = _by("source", list(estimates))
    encoding["tooltip"] = _tips("source", "low", "high", "samples")
    return {
        "id": "speedups",
        "title": "Distribution of speedups",
        "text": "Correct samples by their speedup; to the right of 1 they are faster than the library.",
        "spec": _spec(
            "Histogram of speedups by source", values, [{"mark": "bar", "encoding": encoding}, _at_one("x")], 280
        ),
        "columns": [["source", "source"], ["low", "from"], ["high", "to"], ["samples", "correct samples"]],
    }


def _bars(source: str, estimates: Iterable[Estimate]) -> list[dict[str, Any]]:
    counts = Counter(math.floor(math.log2(estimate.point) / BIN) for estimate in estimates)
    return [
        {"source": source, "low": _edge(number), "high": _edge(number + 1), "samples": counts[number]}
        for number in sorted(counts)
    ]


def _edge(number: int) -> float:
    return float(f"{2 ** (number * BIN):.4g}")


def times_of_cases() -> dict[str, Any]:
    """A point per bench case and side; the page puts in the values {case, what, us}."""
    x: dict[str, Any] = {"field": "us", "type": "quantitative", "title": "µs per call"}
    x["scale"] = {"type": "log", "nice": True}
    x["axis"] = {"format": "~g", "tickCount": 6}
    y: dict[str, Any] = {
        "field": "case",
        "type": "nominal",
        "title": None,
        "sort": None,
        "axis": {"grid": True},
    }
    encoding = {"x": x, "y": y, "color": _sides(), "shape": _sides(), "tooltip": _tips("case", "what", "us")}
    mark = {"type": "point", "filled": True, "opacity": 1}
    spec = _spec("Time per call of each bench case", [], [{"mark": mark, "encoding": encoding}], None)
    return {"spec": spec, "row_height": 26}


def timing_samples() -> dict[str, Any]:
    """A point per window of one bench case; the page puts in the values {window, what, us, off}.

    Library and candidate may be far apart, so what is drawn is how far a window is off its own side's median.
    """
    x: dict[str, Any] = {
        "field": "window",
        "type": "quantitative",
        "title": "window",
        "axis": {"format": "d", "tickMinStep": 1},
    }
    x["scale"] = {"nice": False, "padding": 12, "zero": False}
    y: dict[str, Any] = {
        "field": "off",
        "type": "quantitative",
        "title": "off the side's median",
        "axis": {"format": "+.1%"},
    }
    encoding = {"x": x, "y": y, "color": _sides(), "shape": _sides(), "tooltip": _tips("what", "window", "us")}
    mark = {"type": "point", "filled": True, "opacity": 0.9}
    return {"spec": _spec("Timing samples", [], [{"mark": mark, "encoding": encoding}], 220)}


def curve_rows(selected: Sequence[Selected], attempts: Sequence[Result]) -> list[Row]:
    return scores.rows(selected, attempts, CURVE)


def _spec(description: str, values: Sequence[Any], layer: Sequence[Any], height: int | None) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "$schema": SCHEMA,
        "description": description,
        "width": "container",
        "data": {"values": list(values)},
    }
    spec |= {"height": height} if height else {}
    return {**spec, "layer": list(layer)}


def _at_one(axis: str) -> dict[str, Any]:
    """A line where the candidate is as fast as the library."""
    mark = {"type": "rule", "strokeDash": [4, 4], "opacity": 0.7, "aria": False}
    return {"mark": mark, "encoding": {axis: {"datum": 1}}}


def _by(field: str, domain: Sequence[str]) -> dict[str, Any]:
    scale = {"domain": list(domain)}
    return {"field": field, "type": "nominal", "scale": scale, "legend": {"orient": "top", "title": None}}


def _sides() -> dict[str, Any]:
    """Both sides; the page removes those without values."""
    return _by("what", SIDES)


def _count(title: str, bars: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Whole numbers only: few are all named."""
    stacked = Counter[float]()
    for bar in bars:
        stacked[bar["low"]] += bar["samples"]
    most = max(stacked.values())
    axis = {"format": "d"} | ({"values": list(range(most + 1))} if most < 8 else {})
    return {"field": "samples", "type": "quantitative", "title": title, "axis": axis}


def _tips(*fields: str) -> list[dict[str, str]]:
    return [{"field": field} for field in fields]
