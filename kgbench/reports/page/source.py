"""The data of a page: a scored run with its raw samples, and the current files of its problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kgbench.core.errors import KgbenchError
from kgbench.core.text import plain
from kgbench.core.types import Result
from kgbench.problem.model import Problem
from kgbench.problem.registry import Registry, load_problem, problem_folders
from kgbench.reports.model import Report, report_of
from kgbench.scores.rows import THRESHOLDS
from kgbench.store.reader import StoredRun


@dataclass(frozen=True)
class PageSource:
    run: StoredRun
    """The stored run, raw samples included."""
    report: Report
    problems: Mapping[str, Problem]
    """Problems by id: those whose files can still be read."""
    again: Callable[[Result], str]
    """The command that judges a result's candidate again; empty where there is none."""

    def results_of(self, problem: str) -> list[Result]:
        """Every round of every sample, in that order."""
        found = (result for result in self.report.attempts if result.problem == problem)
        return sorted(found, key=lambda result: (result.sample, result.round))

    def best_of(self, problem: str) -> list[Result]:
        """The round of every sample that counts."""
        found = (result for result in self.report.results if result.problem == problem)
        return sorted(found, key=lambda result: result.sample)


def page_source(run: StoredRun, again: Callable[[Result], str], thresholds: Sequence[float] = THRESHOLDS) -> PageSource:
    """Scores the run and reads its problems; one whose file is gone is shown without what the file says."""
    report = replace(report_of(run, thresholds), where=run.path.name)  # wherever the folder lies, the same page
    own = (run.info.get("asked") or {}).get("problem_dirs", ())
    try:
        paths = Registry(problem_folders(map(Path, own))).paths
    except KgbenchError:
        paths = Registry().paths
    return PageSource(run, report, _loaded(paths, [each.id for each in report.selected]), again)


def _loaded(paths: Mapping[str, Path], ids: Sequence[str]) -> dict[str, Problem]:
    problems = {}
    for each in ids:
        try:
            problems[each] = load_problem(paths[each])
        except (KgbenchError, KeyError):
            continue
    return problems


def shown(text: str) -> str:
    """What a candidate had a hand in, as a page may show it: no control characters, none that turn text around."""
    return plain(text.replace("\r\n", "\n"))
