"""The content of a report: a run's facts, its request, and its scores, computed from stored results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kgbench.core.errors import numbered
from kgbench.core.kinds import DeviceKind, Kind
from kgbench.core.text import number_of
from kgbench.core.types import Result
from kgbench.policy.evidence import notes as evidence_notes
from kgbench.problem.registry import categories
from kgbench.problem.suites import Suite, read_suite
from kgbench.reports.best_library import with_best_libraries
from kgbench.reports.generated import AfterRounds, round_by_round, samples_asked
from kgbench.reports.package_calls import PackageCalls, package_calls
from kgbench.reports.suite import SuiteRow, suite_rows
from kgbench.scores import rows as scores
from kgbench.scores.costs import Cost, cost_of
from kgbench.scores.light import with_least_times
from kgbench.scores.overall import overall
from kgbench.scores.per_problem import ProblemScores, problem_scores
from kgbench.scores.rows import THRESHOLDS, Row
from kgbench.scores.samples import Selected, latest, newest
from kgbench.store import verification
from kgbench.store.errors import StoreError
from kgbench.store.reader import StoredRun, declared_in, problem_hashes
from kgbench.store.records import read_records, with_records


@dataclass(frozen=True)
class Report:
    """A run's facts, its request, and its results."""

    info: dict[str, Any]
    where: str
    selected: tuple[Selected, ...]
    results: tuple[Result, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    attempts: tuple[Result, ...] = ()
    """Results of every round; ``results`` has each sample's best."""
    after_rounds: tuple[AfterRounds, ...] = ()
    cost: Cost | None = None
    suite: Suite | None = None
    suite_rows: tuple[SuiteRow, ...] = ()
    package_calls: tuple[PackageCalls, ...] = ()
    verified: tuple[verification.Verified, ...] = ()
    """Winners that were measured again."""
    overall: tuple[Row, ...] = ()
    """Micro and macro average over several sources: each problem weighs the same, or each source."""
    by: str | None = None
    """The grouping that replaces the rows by source, one of ``scores.BY``; None for by source."""
    groups: tuple[Row, ...] = ()
    """Rows by that grouping; those of a category, kind and model hold problems of several sources."""
    per_problem: tuple[ProblemScores, ...] = ()
    """Scores of each problem, in the order of the run; only with ``by``, since rooflines need every problem file."""


def report_of(
    run: StoredRun,
    thresholds: Sequence[float] = THRESHOLDS,
    *,
    by: str | None = None,
    records: Path | None = None,
    libraries: Sequence[StoredRun] = (),
) -> Report:
    """Scores a stored run; ``by`` is one of ``scores.BY``, for rows beside those by source.

    ``records`` is the folder with the records of devices; without it nothing is compared with any. Of ``libraries``
    those count that are of installed packages, judged on the same GPU (``best_library.py``).
    """
    current = problem_hashes(run.info)
    fresh = [result for result in run.results if not is_stale(result, current.get(result.problem))]
    attempts = tuple(newest(fresh))
    results = tuple(latest(attempts))
    shown = sorted({1.0, *thresholds})
    selected, unread = _with_what_it_is_compared(run.info, attempts, libraries, records)
    seed = seed_of(run)
    per_problem = problem_scores(run.info, selected, attempts) if by else ()
    rooflines = {each.problem: each.roofline for each in per_problem if each.roofline}
    declared = declared_in(run.info)
    rows = tuple(scores.rows(selected, attempts, shown, seed=seed, declared=declared, rooflines=rooflines))
    # A problem's roofline is that of its best sample, whichever model wrote it.
    of_groups = rooflines if by != "model" else None
    notes = run.notes + unread + _stale_notes(len(run.results) - len(fresh)) + evidence_notes(results)
    suite = read_suite(run.path)
    found = suite_rows(suite, results) if suite is not None else ()
    again, cut_off = verification.read(run.path)
    notes += cut_off
    return Report(
        info=run.info,
        where=str(run.path),
        selected=selected,
        results=results,
        rows=rows,
        notes=notes,
        attempts=attempts,
        after_rounds=round_by_round(run.info, selected, attempts, shown),
        cost=cost_of(attempts),
        suite=suite,
        suite_rows=found,
        package_calls=package_calls(results),
        verified=tuple(verification.verified(results, again)),
        overall=overall(selected, attempts, shown, seed=seed),
        by=by,
        groups=tuple(scores.rows(selected, attempts, shown, by=by, seed=seed, rooflines=of_groups)) if by else (),
        per_problem=per_problem,
    )


def _stale_notes(count: int) -> tuple[str, ...]:
    return (numbered("KGB610", f"{number_of(count, 'result')} of older problem files left out."),) if count else ()


def _with_what_it_is_compared(
    info: Mapping[str, Any], attempts: Sequence[Result], libraries: Sequence[StoredRun], records: Path | None
) -> tuple[tuple[Selected, ...], tuple[str, ...]]:
    """The selected problems with least times, packages and records, and the records that cannot be read."""
    selected = with_least_times(selected_in(info), info, attempts)
    return _with_records(with_best_libraries(selected, info, libraries), info, records)


def _with_records(
    selected: tuple[Selected, ...], info: Mapping[str, Any], folder: Path | None
) -> tuple[tuple[Selected, ...], tuple[str, ...]]:
    """Rows with the records of the run's device, and the records that cannot be read."""
    device = info.get("device") or {}
    if folder is None or device.get("kind") != DeviceKind.CUDA or not device.get("name"):
        return selected, ()
    try:
        return with_records(selected, info, read_records(folder, device["name"])), ()
    except StoreError as error:
        return selected, (numbered("KGB650", f"no record is shown: {error.text}"),)


def selected_in(info: Mapping[str, Any]) -> tuple[Selected, ...]:
    """The selected problems of a run. Categories of old runs are looked up in the problem files that ship."""
    samples = samples_asked(info)
    problems = info.get("problems", ())
    shipped = {} if all("category" in each for each in problems) else categories()
    return tuple(
        Selected(
            each["id"],
            Kind(each.get("kind", Kind.COMPUTE)),
            each.get("own", False),
            tuple(each.get("overloads", ())),
            each.get("samples", samples),
            each.get("category") or shipped.get(each["id"], ""),
        )
        for each in problems
    )


def seed_of(run: StoredRun) -> str:
    """What bootstrap intervals are drawn from: always the same for a run, wherever its folder lies."""
    return str(run.info.get("id") or run.path.name)


def is_stale(result: Result, problem_sha256: str | None) -> bool:
    """Whether it was judged by another version of its problem's file than the run's."""
    return bool(result.problem_sha256 and problem_sha256) and result.problem_sha256 != problem_sha256
