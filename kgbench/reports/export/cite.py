"""A run as a reference: BibTeX, and the sentence that a paper needs beside its number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, TextIO

from kgbench.core.text import number_of, plain
from kgbench.reports.model import Report
from kgbench.reports.words import problem_set_words, versions_words
from kgbench.scores.samples import library_ran

_ESCAPED: Final = str.maketrans({
    **{mark: f"\\{mark}" for mark in "&%$#_{}"},
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
})  # fmt: skip


def print_citation(report: Report, stream: TextIO) -> None:
    """From the run's folder alone, so that it is the same everywhere."""
    print(bibtex(report), file=stream)
    print(file=stream)
    print(sentence(report), file=stream)


def bibtex(report: Report) -> str:
    info = report.info
    run, day = _words(info.get("id"), "unknown"), _words(info.get("started"), "")[:10]
    fields = {
        "title": f"{_words(info.get('model'), 'unknown model')} on {_device(report)}: kgbench run {run}",
        "author": "{The kgbench authors}",
        "howpublished": f"kgbench {_words(info.get('kgbench'), 'of unknown version')}",
        "note": problem_set_words(report.info),
        **({"year": day[:4], "month": day[5:7], "day": day[8:]} if re.fullmatch(r"\d{4}-\d\d-\d\d", day) else {}),
    }
    lines = [
        f"  {name:12} = {{{value if name == 'author' else value.translate(_ESCAPED)}}},"
        for name, value in fields.items()
    ]
    return "\n".join([f"@misc{{kgbench-{re.sub(r'[^A-Za-z0-9-]', '', run)},", *lines, "}"])


def sentence(report: Report) -> str:
    """Model and its exact ids, date, device, driver, versions, policy and noise floor."""
    info = report.info
    day = _words(info.get("started"), "an unknown day")[:10] if info.get("started") else "an unknown day"
    parts = (
        f"{_model(report)}",
        f"{number_of(max((each.samples for each in report.selected), default=1), 'sample')} of each problem",
        f"{number_of(int(info.get('rounds') or 1), 'round')}",
        f"{_device(report)}{_driver(info.get('device') or {})}",
        f"versions {versions_words(info) or 'unknown'}",
        *_libraries(report),
        f"policy {_words((info.get('asked') or {}).get('policy'), 'unknown')}",
        _noise(report),
        problem_set_words(report.info),
    )
    return f"Measured with kgbench on {day}: {'; '.join(parts)}."


def _model(report: Report) -> str:
    ids = sorted({each.generation.model_id for each in report.attempts if each.generation and each.generation.model_id})
    named = _words(report.info.get("model"), "unknown")
    return f"model {named}" + (f" (which answered as {plain(', '.join(ids))})" if ids else "")


def _device(report: Report) -> str:
    return _words((report.info.get("device") or {}).get("name"), "an unknown device")


def _driver(device: Mapping[str, Any]) -> str:
    """The driver's version; a CPU has none."""
    return "" if device.get("kind") == "cpu" else f" with driver {_words(device.get('driver'), 'unknown')}"


def _libraries(report: Report) -> Iterable[str]:
    names = sorted({r.library.name for r in report.results if r.library and library_ran(r)})
    if names:
        yield f"compared with {plain(', '.join(names))}"


def _noise(report: Report) -> str:
    """Half-widths of the null test's noise that the intervals of the speedups include."""
    times = [case.timing for result in report.results for case in result.cases if case.timing]
    found = {(timing.noise, timing.noise_source) for timing in times if timing.noise is not None}
    if not found:
        return "no noise floor, since nothing was timed"
    low, high = (end(noise for noise, _ in found) for end in (min, max))
    where = "measured on the device" if any(source == "measured" for _, source in found) else "kgbench's default"
    return f"noise floor ±{low:.2%}" + (f" to ±{high:.2%}" if high > low else "") + f" ({where})"


def _words(value: object, otherwise: str) -> str:
    return plain(str(value)).replace("\n", " ") if value else otherwise
