"""A report and a result as JSON-ready data, and ``--format json``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TextIO

from kgbench.core.details.union import detail_to_json
from kgbench.core.types import Result, first_failure
from kgbench.problem.problem_set import ProblemSet
from kgbench.reports.model import Report
from kgbench.scores.rows import Row
from kgbench.scores.speedups import Estimate, speedup
from kgbench.store import verification
from kgbench.store.encoding import json_text


def as_json(report: Report) -> dict[str, Any]:
    """The report as JSON-ready data; raw samples stay in the run's folder, which is named."""
    return {
        "run": {"path": report.where, **report.info},
        "problem_set": asdict(ProblemSet.of(report.info)),
        "scores": [row_json(row) for row in report.rows],
        "overall": [row_json(row) for row in report.overall],
        "by": report.by,
        "groups": [row_json(row) for row in report.groups],
        "per_problem": [asdict(each) for each in report.per_problem],
        "after_rounds": [each.to_json() for each in report.after_rounds],
        "cost": report.cost.to_json() if report.cost else None,
        "results": [result_json(result) for result in report.results],
        "notes": list(report.notes),
        "verification": verification.summary(report.verified) if report.verified else None,
        "package_calls": [asdict(row) for row in report.package_calls],
        "suite": [asdict(row) for row in report.suite_rows] if report.suite is not None else None,
    }


def row_json(row: Row) -> dict[str, Any]:
    return {**asdict(row), "subset": row.is_subset(), "cost": row.cost.to_json() if row.cost else None}


def print_json(report: Report, stream: TextIO) -> None:
    print(json_text(as_json(report), indent=2), file=stream)


def result_json(result: Result) -> dict[str, Any]:
    """A result as JSON-ready data, without its raw samples and without the cases that passed."""
    case = first_failure(result)
    against = {name: speedup(result, name) for name in ("library", "fallback")}
    return {
        "problem": result.problem,
        "model": result.model,
        "sample": result.sample,
        "round": result.round,
        "outcome": str(result.outcome),
        "reason": result.reason,
        "detail": detail_to_json(result.detail),
        "interpreted": result.interpreted,
        "speedup": None if result.interpreted else estimate_json(against["library"]),
        "fallback_speedup": None if result.interpreted else estimate_json(against["fallback"]),
        "overloads": result.overloads,
        "policy": result.policy or "",
        "not_allowed": [asdict(each) for each in result.evidence if not each.allowed],
        "library": asdict(result.library) if result.library else None,
        "first_failure": case.to_json() if case else None,
        "generation": asdict(result.generation) if result.generation else None,
        "log_tail": result.log_tail,
        "seconds": result.seconds,
        "memory_mb": result.memory_mb,
        "sandbox": result.sandbox,
    }


def estimate_json(estimate: Estimate | None) -> dict[str, Any] | None:
    return asdict(estimate) if estimate else None
