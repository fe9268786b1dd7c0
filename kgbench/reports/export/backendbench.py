"""BackendBench's result files: all tests, the failed ones, and the table of operators, of the first sample."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, TextIO

from kgbench.core.kinds import Phase
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result, Timing
from kgbench.reports.export.folder import Files, attempts_by_problem, json_file, print_first, timed
from kgbench.reports.model import Report
from kgbench.reports.words import first_words
from kgbench.scores.samples import Selected, latest
from kgbench.store.encoding import json_text

FULL: Final = "full_results.json"
FAILED: Final = "failed_tests.json"
SUMMARY: Final = "operator_summary.csv"


def print_results(report: Report, stream: TextIO) -> None:
    print_first(files(report), stream)


def files(report: Report) -> Files:
    attempts = attempts_by_problem(report)
    tests = [test for problem in report.selected for test in _tests(problem, attempts[problem.id])]
    failed = [test for test in tests if not test.get("is_correct", test.get("successfully_ran"))]
    operators = dict.fromkeys(test["op_name"] for test in tests)
    return {
        FULL: json_file(_sorted(tests)),
        FAILED: json_file(_sorted(failed)),
        SUMMARY: _table([_operator(name, [test for test in tests if test["op_name"] == name]) for name in operators]),
    }


def _sorted(tests: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(tests, key=lambda test: (test["op_name"], test["args"]))


def _tests(problem: Selected, attempts: Sequence[Result]) -> Iterator[dict[str, Any]]:
    first = latest(result for result in attempts if result.sample == attempts[0].sample)
    for result in first:
        times = {id(case): timing for case, timing in timed(result)}
        for case in result.cases:
            is_timed = case.phase == Phase.BENCH
            yield _performance(result, case, times.get(id(case))) if is_timed else _correctness(result, case)
        if not result.cases:
            yield from (_nothing_ran(problem, name, result) for name in problem.overloads or ("",))
    if not first:
        yield from (_nothing_ran(problem, name, None) for name in problem.overloads or ("",))


def _name(problem: str, overload: str) -> str:
    """``add.Tensor``, ``mm.default``; of a routine that knows no overloads its own name."""
    source, _, name = problem.partition("/")
    return f"{name}.{overload or 'default'}" if source == "aten" or overload else name


def _args(case: CaseResult) -> str:
    """The arguments in BackendBench's notation where the case is a call of an operator, else the case's variables."""
    return str(case.variables.get("call") or json_text(case.variables))


def _correctness(result: Result, case: CaseResult) -> dict[str, Any]:
    right = case.outcome is Outcome.PASSED
    return {
        "op_name": _name(result.problem, case.overload),
        "args": _args(case),
        "is_correct": right,
        "error_msg": "" if right else case.reason or first_words(result),
        "error_type": "" if right else str(case.outcome),
        "traceback": "",
        "max_abs_error": None,
        "max_rel_error": None,
        "test_type": "correctness",
    }


def _nothing_ran(problem: Selected, overload: str, result: Result | None) -> dict[str, Any]:
    """One test per overload for a candidate that reached no case, so that it does not vanish."""
    outcome = result.outcome if result else Outcome.NO_CANDIDATE
    case = CaseResult("", overload, Phase.CHECK, "", {}, outcome, first_words(result) if result else "not evaluated")
    return {**_correctness(Result(problem.id, "", 0, outcome), case), "args": ""}


def _performance(result: Result, case: CaseResult, timing: Timing | None) -> dict[str, Any]:
    return {
        "op_name": _name(result.problem, case.overload),
        "args": _args(case),
        "speedup": timing.ratio if timing else None,
        "benchmark_time_ms": timing.candidate_us / 1000 if timing else None,
        "reference_time_ms": timing.library_us / 1000 if timing else None,
        "error_msg": "" if case.outcome is Outcome.PASSED else case.reason,
        "successfully_ran": case.outcome is Outcome.PASSED,
        "test_type": "performance",
    }


def _operator(name: str, tests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    correctness = [test for test in tests if test["test_type"] == "correctness"]
    performance = [test for test in tests if test["test_type"] == "performance"]
    right, ran = sum(t["is_correct"] for t in correctness), sum(t["successfully_ran"] for t in performance)
    speedups = [t["speedup"] for t in performance if t["speedup"] and math.isfinite(t["speedup"])]
    return {
        "operator": name,
        "total_tests": len(tests),
        "correctness_tests": len(correctness),
        "performance_tests": len(performance),
        "passed_correctness_tests": right,
        "passed_performance_tests": ran,
        "failed_correctness_tests": len(correctness) - right,
        "failed_performance_tests": len(performance) - ran,
        "correctness_rate": right / len(correctness) if correctness else 0.0,
        "avg_speedup": math.fsum(speedups) / len(speedups) if speedups else 0.0,
        "geomean_speedup": math.exp(math.fsum(map(math.log, speedups)) / len(speedups)) if speedups else 0.0,
        "max_absolute_error": None,
        "max_relative_error": None,
    }


def _table(operators: Sequence[dict[str, Any]]) -> str:
    text = io.StringIO()
    if operators:
        writer = csv.DictWriter(text, list(operators[0]))
        writer.writeheader()
        writer.writerows(operators)
    return text.getvalue()
