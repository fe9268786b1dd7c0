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
    # A product of 16-bit matrices may be a case of dtype float32: the fastest dtype that the case names counts.
    named = {_REAL.get(str(name), str(name)) for name in (case.dtype, *case.variables.values())}
    roofs = [float(gflop_per_s) for name, gflop_per_s in peaks["gflop_per_s"].items() if name in named]
    shares = [rates["gb_per_s"] / float(peaks["gb_per_s"])]
    shares += [rates["gflop_per_s"] / max(roofs)] if roofs else []
    return max(shares)
