"""KernelBench's result files: what its ``benchmark_eval_analysis.py`` reads of a run, and of a baseline's times.

Its problems have numbers and are modules; ours get numbers in the order of the run, in one level. Only problems of kind
compute are in the files: each of them is scored by time there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, TextIO

from kgbench.core.kinds import Kind
from kgbench.core.outcomes import Outcome
from kgbench.core.types import Result
from kgbench.reports.export.folder import Files, attempts_by_problem, json_file, print_first, speed, timed, why
from kgbench.reports.model import Report
from kgbench.scores.samples import is_compiled, ks, latest, pass_at_k

LEVEL: Final = 1
NO_TIME: Final = -1.0
"""KernelBench's mark for a time that was not taken."""
RESULTS: Final = "eval_results.json"
AT_K: Final = "pass_at_k_results.json"
BASELINE: Final = "baseline_time_kgbench.json"


def print_results(report: Report, stream: TextIO) -> None:
    print_first(files(report), stream)


def files(report: Report) -> Files:
    numbers = {p.id: number for number, p in enumerate((p for p in report.selected if p.kind == Kind.COMPUTE), 1)}
    attempts = attempts_by_problem(report)
    asked = {problem.id: problem.samples for problem in report.selected}
    by_problem = {name: _best_rounds(name, attempts[name], asked[name]) for name in numbers}
    reference_ms = {name: _reference_ms(by_problem[name]) for name in numbers}
    named = {name: f"{number}_{name.replace('/', '_')}.py" for name, number in numbers.items()}
    results = {
        str(numbers[name]): [_entry(report, result, reference_ms[name]) for result in of_problem]
        for name, of_problem in by_problem.items()
    }
    baseline = {named[name]: _time(report, reference_ms[name]) for name in numbers}
    written = {
        RESULTS: json_file(results),
        BASELINE: json_file({f"level{LEVEL}": baseline}),
        **{f"KernelBench/level{LEVEL}/{file}": f"# kgbench's problem {name}\n" for name, file in named.items()},
    }
    if any(len(of_problem) > 1 for of_problem in by_problem.values()):
        written[AT_K] = json_file(_at_k({str(numbers[name]): by_problem[name] for name in numbers}))
    return written


def _best_rounds(problem: str, attempts: Sequence[Result], asked: int) -> list[Result]:
    """The best round of each sample; a requested sample without one counts as not correct."""
    found = {result.sample: result for result in latest(attempts)}
    none = Result(problem, "", 0, Outcome.NO_CANDIDATE, reason="not evaluated")
    return [found.get(sample, replace(none, sample=sample)) for sample in sorted({*found, *range(asked)})]


def _reference_ms(samples: Sequence[Result]) -> float | None:
    """Geometric mean over the bench cases of the first sample that has times."""
    for result in samples:
        times = [timing.library_us for _, timing in timed(result)]
        if times:
            return math.exp(math.fsum(map(math.log, times)) / len(times)) / 1000
    return None


def _entry(report: Report, result: Result, reference_ms: float | None) -> dict[str, Any]:
    """Runtime is the reference time over the speedup, so that KernelBench's quotient of the two is the speedup."""
    right, fast = result.outcome is Outcome.PASSED, speed(result)
    runtime = reference_ms / fast.point if right and fast and reference_ms else NO_TIME
    metadata = {"problem": result.problem, "outcome": str(result.outcome), "hardware": _hardware(report)}
    metadata |= {"device": result.device} if result.device else {}
    return {
        "sample_id": result.sample,
        "compiled": is_compiled(result),
        "correctness": right,
        "metadata": metadata if right else {**metadata, "error": why(result)},
        "runtime": runtime,
        "runtime_stats": {"mean": runtime} if runtime != NO_TIME else {},
    }


def _time(report: Report, reference_ms: float | None) -> dict[str, Any]:
    """The time, also for problems without one: KernelBench leaves out of a share what has no baseline."""
    return {
        "mean": 1.0 if reference_ms is None else reference_ms,
        "std": None, "min": None, "max": None, "num_trials": None,
        "hardware": _hardware(report),
        "device": (report.info.get("device") or {}).get("kind"),
    }  # fmt: skip


def _hardware(report: Report) -> str | None:
    return (report.info.get("device") or {}).get("name")


def _at_k(by_number: dict[str, list[Result]]) -> dict[str, Any]:
    most = max(map(len, by_number.values()))
    wanted = ks(most)
    problems = {}
    for number, results in by_number.items():
        right = sum(result.outcome is Outcome.PASSED for result in results)
        at_k = {f"pass@{k}": pass_at_k(len(results), right, k) for k in wanted if k <= len(results)}
        problems[number] = {"total_samples": len(results), "correct_samples": right, **at_k}
    shares = {f"pass@{k}": [each[f"pass@{k}"] for each in problems.values() if f"pass@{k}" in each] for k in wanted}
    metadata = {
        "total_problems": len(problems),
        "problems_with_samples": len(problems),
        "total_evaluated_samples": sum(int(each["total_samples"]) for each in problems.values()),
        "total_correct_samples": sum(int(each["correct_samples"]) for each in problems.values()),
    }
    return {
        "averages": {f"avg_{name}": math.fsum(each) / len(each) for name, each in shares.items() if each},
        "metadata": {**metadata, **{f"{name}_count": len(each) for name, each in shares.items()}},
        "problems": problems,
    }
