"""KernelGenBench's result files: verdicts by round, as its ``analyze.py`` reads them, and what passed within k rounds.

A round there is one attempt at every operator that has not passed. Ours are a sample's rounds, or samples one after
the other; those after the first correct one are left out, as they would not have been asked for.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TextIO

from kgbench.core.kinds import PolicyMode
from kgbench.core.outcomes import Outcome
from kgbench.core.types import CaseResult, Result, Timing
from kgbench.reports.export.folder import Files, attempts_by_problem, json_file, print_first, timed, why
from kgbench.reports.model import Report
from kgbench.store.layout import candidate_path

_SOURCES: Final = {"vllm": "vllm13"}
"""Sources with another name there."""


def print_results(report: Report, stream: TextIO) -> None:
    print_first(files(report), stream)


def files(report: Report) -> Files:
    attempts = {name: _until_correct(each) for name, each in attempts_by_problem(report).items()}
    rounds = max(1, *(len(each) for each in attempts.values()), 1)
    written = {}
    for number in range(rounds):
        of_round = [each[number] for each in attempts.values() if number < len(each)]
        entries = [_entry(report, result) for result in of_round]
        passed = sum(entry["success"] for entry in entries)
        folder = f"verification/log_{number}"
        written[f"{folder}/result.json"] = json_file(entries)
        summary = {"total": len(entries), "passed": passed, "failed": len(entries) - passed}
        written[f"{folder}/summary.json"] = json_file(summary)
    written["pass_at_k_results.json"] = json_file(_at_k(attempts, rounds))
    if (report.info.get("asked") or {}).get("policy") == PolicyMode.STRICT:
        written["pass_at_k_results_antihack.json"] = json_file(_antihack(attempts))
    return written


def _until_correct(results: list[Result]) -> list[Result]:
    first = next((number for number, each in enumerate(results) if _right(each)), len(results))
    return results[: first + 1]


def _right(result: Result) -> bool:
    return result.outcome is Outcome.PASSED


def _name(problem: str) -> str:
    source, _, name = problem.partition("/")
    return f"{_SOURCES.get(source, source)}::{name}"


def _entry(report: Report, result: Result) -> dict[str, Any]:
    right = sum(case.outcome is Outcome.PASSED for case in result.cases)
    return {
        "op_name": _name(result.problem),
        "success": _right(result),
        "traceback": None if _right(result) else why(result),
        "params": None,
        "speedup": [_speed(case, timing) for case, timing in timed(result)] or None,
        "info": {"total": len(result.cases), "failed": len(result.cases) - right, "success": right},
        "code": _code(report, result),
        "test_func": None,
    }


def _speed(case: CaseResult, timing: Timing) -> dict[str, Any]:
    """Milliseconds, as Triton's do_bench gives them. There is no entry ``avg``."""
    return {
        "ref_time": timing.library_us / 1000,
        "res_time": timing.candidate_us / 1000,
        "speedup": timing.ratio,
        "params": case.variables,
    }


def _code(report: Report, result: Result) -> str | None:
    path = candidate_path(Path(report.where), result.problem, result.sample, result.round)
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else None


def _at_k(attempts: dict[str, list[Result]], rounds: int) -> dict[str, Any]:
    first = {
        name: next((number for number, each in enumerate(results) if _right(each)), None)
        for name, results in attempts.items()
    }
    total, summaries = len(attempts), []
    for number in range(rounds):
        new = sorted(_name(name) for name, passed in first.items() if passed == number)
        before = sum(passed is not None and passed < number for passed in first.values())
        summaries.append({
            "round": number,
            "remaining_before": total - before,
            "newly_passed": len(new),
            "newly_passed_operators": new,
            "total_passed": before + len(new),
            "pass_rate": (before + len(new)) / total if total else 0,
        })  # fmt: skip
    passed = sorted(_name(name) for name, number in first.items() if number is not None)
    details = {
        _name(name): {
            "passed": first[name] is not None,
            "namespace": _name(name).partition("::")[0],
            "kernel_name": name.partition("/")[2],
            "first_pass_round": first[name],
            "total_attempts": len(results),
        }
        for name, results in attempts.items()
    }
    return {
        "total_operators": total,
        "total_passed": len(passed),
        "final_pass_rate": len(passed) / total if total else 0,
        "rounds_summary": summaries,
        "passed_operators": passed,
        "operator_details": details,
    }


def _antihack(attempts: dict[str, list[Result]]) -> dict[str, Any]:
    """Rejections by the strict policy: not correct here, while it would have passed there."""
    passed = sorted(_name(name) for name, results in attempts.items() if any(map(_right, results)))
    rejected = {name: [r for r in results if r.outcome is Outcome.REJECTED] for name, results in attempts.items()}
    hacked = {_name(name): why(each[-1]) for name, each in rejected.items() if each and _name(name) not in passed}
    return {
        "total_operators": len(attempts),
        "original_passed": len(passed) + len(hacked),
        "hacked_count": len(hacked),
        "clean_passed": len(passed),
        "clean_pass_rate": len(passed) / len(attempts) if attempts else 0,
        "hacked_operators": sorted(hacked),
        "clean_passed_operators": passed,
        "hack_details": {name: {"hacked": True, "reason": reason} for name, reason in sorted(hacked.items())},
    }
