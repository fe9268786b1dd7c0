"""How much of a device a kernel uses: bytes and operations of a timed call beside the peaks that were measured."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

from kgbench.core.errors import ExpressionError
from kgbench.core.types import CaseResult
from kgbench.problem.model import Cost, Problem

_REAL: Final = {"complex64": "float32", "complex128": "float64"}
"""Dtype of the parts of a complex number, by its dtype."""
_NARROW: Final = frozenset({"int8", "float8_e4m3fn", "float8_e5m2"})
_NARROW_FACTOR: Final = 2.0
"""Rate of 8-bit tensor cores over that of 16-bit ones, from Turing (int8) and Ada (float8) on; it is not measured."""


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


def roofline_share(case: CaseResult, cost: Cost | None, peaks: Mapping[str, Any] | None) -> float | None:
    """Least time of a call on the device / the candidate's time."""
    if cost is None or not peaks or case.timing is None or not case.timing.candidate_us > 0:
        return None
    least = least_us(cost, case.dtype, case.variables, peaks)
    return least / case.timing.candidate_us if least else None


def least_us(cost: Cost, dtype: str, variables: Mapping[str, Any], peaks: Mapping[str, Any]) -> float | None:
    """Least time of a call in µs: its bytes or its operations at the device's measured peak, whichever takes longer.

    A kernel that takes this long has a roofline share of 1. None where the problem file's figures have no value here.
    """
    try:
        moved, flops = (float(expr.evaluate(variables)) for expr in (cost.bytes, cost.flops))
    except ExpressionError:
        return None
    named = {cost.arithmetic} if cost.arithmetic else {str(name) for name in (dtype, *variables.values())}
    arithmetic = _gflop_per_s(named, peaks["gflop_per_s"])
    times = [moved / _gb_per_s(peaks) * 1e-3, *([flops / arithmetic * 1e-3] if arithmetic else [])]
    return max(times) or None


def _gb_per_s(peaks: Mapping[str, Any]) -> float:
    """The largest measured bandwidth: copying is the slowest of the three on an H200, and kernels are between them."""
    return max(float(peaks[name]) for name in ("gb_per_s", "read_gb_per_s", "write_gb_per_s") if name in peaks)


def _gflop_per_s(named: Set[str], measured: Mapping[str, Any]) -> float | None:
    """Peak of the fastest of these dtypes; None where none was measured.

    A product of 16-bit matrices may be a case of dtype float32: so the fastest dtype that a case names counts.
    """
    names = {*named, *(_REAL[name] for name in named if name in _REAL)}
    rates = [float(rate) for name, rate in measured.items() if name in names]
    if named & _NARROW:
        rates += [_NARROW_FACTOR * float(measured[each]) for each in ("float16", "bfloat16") if each in measured]
    return max(rates, default=None)
