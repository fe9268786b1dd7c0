"""For a step of GitHub Actions: an annotation per failure on stdout, the table in the step's summary.

GitHub shows ten errors of a step; the summary has all of them.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TextIO

from kgbench.core.errors import UsageError
from kgbench.core.outcomes import CiState, Outcome
from kgbench.core.text import plain
from kgbench.reports.columns import by_the_clock, scores_shown
from kgbench.reports.export.folder import why
from kgbench.reports.export.tidy import Row, one_per_sample, sample_name
from kgbench.reports.model import Report
from kgbench.reports.words import device_words, problem_set_words, result_line
from kgbench.scores.score import Place

SUMMARY: Final = "GITHUB_STEP_SUMMARY"
"""The variable that names the file which GitHub shows as a step's summary."""
_MOST_FILES: Final = 5000
"""Most files of a folder that are searched for candidates."""
_MOST_BYTES: Final = 1_000_000
"""GitHub takes 1 MiB of a step's summary, and nothing of a larger one."""
_DIR: Final = "dir:"
_ESCAPED: Final = str.maketrans({mark: f"&#{ord(mark)};" for mark in "&<>\\`*_[]|~#!@"})


def print_github(report: Report, stream: TextIO) -> None:
    """Annotations on stdout; the summary goes into the step's own file, and to stdout where there is none."""
    for line in annotation_lines(report):
        print(line, file=stream)
    where = os.environ.get(SUMMARY)
    if not where:
        print("\n" + summary(report), end="", file=stream)
        return
    try:
        with open(where, "a", encoding="utf-8") as file:
            file.write(summary(report))
    except OSError as error:
        words = f"{where}: cannot be written: {error.strerror}; {SUMMARY} names the file of a step's summary"
        raise UsageError("KGB188", words) from error


def annotation_lines(report: Report) -> Iterable[str]:
    """``::error file=…,title=…::message``; a skipped one is a warning. The file is where the candidate came from."""
    files = candidate_files(report)
    for row in one_per_sample(report):
        if row.result and row.result.outcome is Outcome.PASSED:
            continue
        level = "warning" if row.result and row.result.outcome.facts.ci is CiState.SKIPPED else "error"
        file = files.get(row.result.candidate_sha256) if row.result else None
        where = f"file={_property(file)},line=1," if file else ""
        message = why(row.result) if row.result else "not evaluated"
        yield f"::{level} {where}title={_property(sample_name(row))}::{_message(message)}"


def _message(text: str) -> str:
    return plain(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")


def candidate_files(report: Report) -> Mapping[str, str]:
    """Paths below the working directory by the SHA-256 of their text: of the file or the folder that was judged."""
    spelling = str(report.info.get("model") or "")
    given = Path(spelling.removeprefix(_DIR))
    asked_from = Path(str((report.info.get("asked") or {}).get("folder") or "."))
    root = given if given.is_absolute() else asked_from / given
    wanted = {result.candidate_sha256 for result in report.results if result.candidate_sha256}
    if not wanted or not (spelling.startswith(_DIR) or spelling.endswith(".py")):
        return {}
    paths = [root] if root.is_file() else sorted(root.rglob("*.py"))[:_MOST_FILES] if root.is_dir() else []
    found = {}
    for path in paths:
        if (sha256 := _hash(path)) in wanted and path.resolve().is_relative_to(Path.cwd()):
            found[sha256] = str(path.resolve().relative_to(Path.cwd()))
    return found


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def summary(report: Report) -> str:
    """Markdown: shares by source, then each sample that is not correct, then the speed of the correct ones."""
    lines = [f"## kgbench {_cell(str(report.info.get('id') or ''))}", ""]
    shown = scores_shown(Place.SUMMARY, report.rows)
    lines += [f"| {' | '.join(['source', 'problems', *(score.head_in(Place.SUMMARY) for score in shown)])} |"]
    lines += [f"|---|{'---:|' * (1 + len(shown))}"]
    for row in report.rows:
        cells = (
            f"{row.source} {row.kinds}",
            str(row.problems),
            *(" ".join(by_the_clock(score, row)) for score in shown),
        )
        lines.append(f"| {' | '.join(map(_cell, cells))} |")
    rows = list(one_per_sample(report))
    wrong = [row for row in rows if not (row.result and row.result.outcome is Outcome.PASSED)]
    right = [row for row in rows if row.result and row.result.outcome is Outcome.PASSED]
    for title, listed in (("Not correct", wrong), ("Correct", right)):
        if listed:
            lines += ["", f"### {title}", "", "| candidate | verdict |", "|---|---|"]
            lines += [f"| {_cell(sample_name(row))} | {_cell(_verdict(row))} |" for row in listed]
    lines += ["", _cell(f"device: {device_words(report.info.get('device') or {})}")]
    lines += ["", _cell(problem_set_words(report.info)), ""]
    return _cut("\n".join(lines))


def _verdict(row: Row) -> str:
    return result_line(row.result) if row.result else "not evaluated"


def _cell(text: str) -> str:
    """Text that is neither Markdown nor HTML: what a candidate says stays words."""
    return plain(text).replace("\n", " ").translate(_ESCAPED)


def _cut(text: str) -> str:
    if len(text.encode()) <= _MOST_BYTES:
        return text
    lines, size = [], 0
    for line in text.splitlines():
        size += len(line.encode()) + 1
        if size > _MOST_BYTES - 100:
            break
        lines.append(line)
    return "\n".join([*lines, "", "The rest is left out: GitHub shows no larger summary.", ""])
