"""Speed of light: the least time of each timed call on the run's device, and which calls are too short to say anything.

The least times are computed when a run begins, from the problem files and the peaks of its device, and stand in its
run.json under ``least_us``: which problems count must not depend on what was submitted.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final

from kgbench.core.errors import ExpressionError
from kgbench.core.kinds import DeviceKind, Kind
from kgbench.core.types import Result
from kgbench.problem.cases import bench_cases, choose_preset
from kgbench.problem.model import Problem
from kgbench.scores.roofline import least_us
from kgbench.scores.samples import Selected
from kgbench.scores.speedups import case_key


def least_times(problems: Iterable[Problem], device: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Least time in µs by problem, and there by ``OVERLOAD CASE``; of problems of kind compute that declare a cost
    which is not loose.

    ``device`` is that of run.json. Empty on a CPU, whose caches hold too much, and where no peaks are known.
    """
    peaks = device.get("peaks")
    if device.get("kind") != DeviceKind.CUDA or not peaks:
        return {}
    memory_gb = device.get("memory_gb")
    found = {each.id: _of_problem(each, peaks, memory_gb) for each in problems if each.kind == Kind.COMPUTE}
    return {problem: times for problem, times in found.items() if times}


def _of_problem(problem: Problem, peaks: Mapping[str, Any], memory_gb: float | None) -> dict[str, float]:
    times = {}
    for overload in problem.overloads:
        if not overload.required or overload.cost is None or overload.cost.loose:
            continue
        try:
            cases = bench_cases(overload, choose_preset(overload, DeviceKind.CUDA, memory_gb))
        except ExpressionError:
            continue
        for case in cases:
            if (least := least_us(overload.cost, case.dtype, case.variables, peaks)) is not None:
                times[case_key(case.overload, case.id)] = least
    return times


LEAST_VERSION: Final = 2
"""Version of how least times are computed, ``least_version`` of run.json. In version 1, which is not stored, bandwidth
was that of copying, and 8-bit and complex products had no rate of their own."""
CONTRADICTED: Final = 1.1
"""Factor by which a library is below a least time that it proves wrong: measured peaks are some percent too low."""


def with_least_times(
    selected: Sequence[Selected], info: Mapping[str, Any], results: Iterable[Result] = ()
) -> tuple[Selected, ...]:
    """Each problem with the least times of its cases that take longer than an empty launch on the run's device.

    ``info`` is run.json; in one that does not say how long that takes, no problem has any. A least time that the
    library itself is below in ``results`` is left out: what the file counted or the peak that was taken was wrong.
    """
    peaks = (info.get("device") or {}).get("peaks") or {}
    by_problem, empty_us = info.get("least_us") or {}, peaks.get("empty_launch_us")
    if not by_problem or empty_us is None:
        return tuple(selected)
    wrong = contradicted(by_problem, results)
    return tuple(
        dataclasses.replace(each, least_us=_longer(by_problem.get(each.id, {}), empty_us, wrong.get(each.id, set())))
        for each in selected
    )


def contradicted(least_us: Mapping[str, Mapping[str, float]], results: Iterable[Result]) -> dict[str, set[str]]:
    """The timed cases, by problem, whose least time the library is below by more than ``CONTRADICTED``."""
    found: dict[str, set[str]] = {}
    for result in results:
        times = least_us.get(result.problem, {})
        for case in result.cases:
            key, timing = case_key(case.overload, case.id), case.timing
            if timing and timing.against == "library" and 0 < timing.library_us * CONTRADICTED < times.get(key, 0.0):
                found.setdefault(result.problem, set()).add(key)
    return found


def _longer(times: Mapping[str, float], empty_us: float, wrong: Set[str]) -> dict[str, float]:
    return {case: float(least) for case, least in times.items() if float(least) > empty_us and case not in wrong}
