"""How much of a device a kernel uses: bytes and operations of a timed call beside the peaks that were measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kgbench.core.errors import ExpressionError
from kgbench.core.types import CaseResult
from kgbench.problem.model import Cost, Problem

_REAL: Final = {"complex64": "float32", "complex128": "float64"}


def cost_of(problem: Problem | None, case: CaseResult) -> Cost | None:
    """What the problem file says that a call of the case's overload costs; None where it says nothing."""
    overloads = problem.overloads if problem else ()
    return next((overload.cost for overload in overloads if overload.name == case.overload), None)


def achieved(case: CaseResult, cost: Cost | None) -> dict[str, float] | None:
    """GB/s and GFLOP/s of the candidate, from what the problem file says that a call costs; None where it says none."""
    if cost is None or case.timing is None or not case.timing.candidate_us > 0:
        return None
    try:
        moved, flops = (float(expr.evaluate(case.variables)) for expr in (cost.bytes, cost.flops))
    except ExpressionError:
        return None
    per_us = 1e-3 / case.timing.candidate_us
    return {"gb_per_s": moved * per_us, "gflop_per_s": flops * per_us}


def roofline_share(
    case: CaseResult, rates: Mapping[str, float] | None, peaks: Mapping[str, Any] | None
) -> float | None:
    """Which share of the device's measured bandwidth or arithmetic the candidate reaches, whichever is larger."""
    if not rates or not peaks:
        return None
    arithmetic = _gflop_per_s(case.dtype, case.variables, peaks)
    shares = [rates["gb_per_s"] / float(peaks["gb_per_s"])]
    shares += [rates["gflop_per_s"] / arithmetic] if arithmetic else []
    return max(shares)


def least_us(cost: Cost, dtype: str, variables: Mapping[str, Any], peaks: Mapping[str, Any]) -> float | None:
    """Least time of a call in µs: its bytes or its operations at the device's measured peak, whichever takes longer.

    A kernel that takes this long has a roofline share of 1. None where the problem file's figures have no value here.
    """
    try:
        moved, flops = (float(expr.evaluate(variables)) for expr in (cost.bytes, cost.flops))
    except ExpressionError:
        return None
    arithmetic = _gflop_per_s(dtype, variables, peaks)
    times = [moved / float(peaks["gb_per_s"]) * 1e-3, *([flops / arithmetic * 1e-3] if arithmetic else [])]
    return max(times) or None


def _gflop_per_s(dtype: str, variables: Mapping[str, Any], peaks: Mapping[str, Any]) -> float | None:
    """Peak of a case's arithmetic; None where none was measured.

    A product of 16-bit matrices may be a case of dtype float32: the fastest dtype that the case names counts.
    """
    named = {_REAL.get(str(name), str(name)) for name in (dtype, *variables.values())}
    return max((float(rate) for name, rate in peaks["gflop_per_s"].items() if name in named), default=None)
