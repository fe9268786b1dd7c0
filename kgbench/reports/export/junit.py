"""JUnit's XML, as Jenkins and GitLab read it: a suite per source, a test per problem and sample."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TextIO
from xml.etree import ElementTree as Xml

from kgbench.core.outcomes import CiState
from kgbench.core.text import plain
from kgbench.core.types import Result
from kgbench.problem.problem_set import ProblemSet
from kgbench.reports.export.folder import why
from kgbench.reports.export.tidy import Row, one_per_sample, sample_name
from kgbench.reports.model import Report
from kgbench.reports.words import device_words, failure_words, last_words, result_line


def print_junit(report: Report, stream: TextIO) -> None:
    """Well-formed whatever a candidate says: characters that XML does not know are replaced."""
    root = Xml.Element("testsuites", name="kgbench")
    by_source: dict[str, list[Row]] = {}
    for row in one_per_sample(report):
        by_source.setdefault(row.problem.partition("/")[0], []).append(row)
    for source, rows in by_source.items():
        root.append(_suite(report, source, rows))
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, 0)) for suite in root)))
    Xml.indent(root)
    text = io.BytesIO()
    Xml.ElementTree(root).write(text, encoding="utf-8", xml_declaration=True)
    stream.write(text.getvalue().decode() + "\n")


def _suite(report: Report, source: str, rows: Sequence[Row]) -> Xml.Element:
    suite = Xml.Element("testsuite", name=plain(source), tests=str(len(rows)))
    properties = Xml.SubElement(suite, "properties")
    for name, value in _facts(report):
        Xml.SubElement(properties, "property", name=name, value=plain(value))
    for row in rows:
        suite.append(_case(row))
    for tag, name in ((CiState.FAILURE, "failures"), (CiState.ERROR, "errors"), (CiState.SKIPPED, "skipped")):
        suite.set(name, str(len(suite.findall(f"testcase/{tag}"))))
    suite.set("time", f"{sum(float(case.get('time', 0)) for case in suite.iter('testcase')):.3f}")
    if started := report.info.get("started"):
        suite.set("timestamp", plain(str(started)))
    return suite


def _facts(report: Report) -> Iterable[tuple[str, str]]:
    info = report.info
    named = (("run", info.get("id")), ("model", info.get("model")), ("kgbench", info.get("kgbench")))
    yield from ((name, str(value)) for name, value in named if value)
    yield "device", device_words(info.get("device") or {})
    yield "problem set", plain(ProblemSet.of(report.info).words)


def _case(row: Row) -> Xml.Element:
    seconds = row.result.seconds.get("total", 0.0) if row.result else 0.0
    source = row.problem.partition("/")[0]
    case = Xml.Element(
        "testcase", classname=plain(f"kgbench.{source}"), name=plain(sample_name(row)), time=f"{seconds:.3f}"
    )
    state = row.result.outcome.facts.ci if row.result else CiState.FAILURE
    if row.result is None:
        Xml.SubElement(case, state, type="not evaluated", message="not evaluated: the run has no result of it")
    elif state is not CiState.PASSED:
        bad = Xml.SubElement(case, state, type=str(row.result.outcome), message=plain(why(row.result)))
        bad.text = _words(row.result)
    else:
        Xml.SubElement(case, "system-out").text = plain(result_line(row.result))
    return case


def _words(result: Result) -> str:
    return plain("\n".join([*failure_words(result), *last_words(result.log_tail)]))
