"""The probability that a kernel passes which leaves out a share of its timed calls, from the clock's comparisons.

A call that was left out is judged, and so found, if it is compared and its sample stands out. The clock's constants
give the number of compared calls: all scored ones, or ``COMPARED_CALLS`` or all where the library's times are known.
Whether a sample stands out is tried: correct answers to some calls with new values are each compared with the one
before it, which is the result of a call that was left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import torch

from kgbench.baselines.expected import Answer, Expected, Sampled
from kgbench.core.kinds import DeviceKind, Kind, Phase
from kgbench.harness.clock.compared import COMPARED_CALLS, LEAST_DIFFERENCE, SAMPLED, STANDS_OUT, differences
from kgbench.harness.verdict.canonical import in_one_form
from kgbench.harness.verdict.inputs import CallInputs, make_inputs
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.narrow_dtypes import stored_as, widened
from kgbench.harness.verdict.random.battery import UNALIKE_BITS
from kgbench.problem.cases import BoundCase, bind, case_bytes, expand_cases
from kgbench.problem.model import Overload, Problem

SHARE: Final = 0.05
"""Share of timed calls that the kernel leaves out."""
TRIALS: Final = 6
"""Number of calls whose correct answers are compared with each other."""
MOST_BYTES: Final = 256 << 10
"""Maximum size of the tried call in bytes: it is the largest check case within this size."""
ROUNDING: Final = 4.0
"""Difference of an honest call from the library's, in units of the output's resolution; 0 where the rule is exact."""
NARROW_ROUNDING: Final = 0.5
"""The same of outputs of 16 bits and fewer, which are rounded once: half of the elements are one unit off."""


def chance_left_out(problem: Problem) -> float | None:
    """The probability that nothing is found in any timed case of a required overload; None if nothing is timed."""
    chances = [_of_overload(each) for each in problem.overloads if each.required and each.bench]
    return math.prod(chances) if chances and problem.kind in (Kind.COMPUTE, Kind.RANDOM) else None


def _of_overload(overload: Overload) -> float:
    cases = min(len(templates) for templates in overload.bench.values())
    compared = (1 - SHARE) ** COMPARED_CALLS
    missed = unnoticed(overload)
    return (compared + (1 - compared) * missed) ** cases


def unnoticed(overload: Overload) -> float:
    """Of the calls that are wrong because they were left out, the share whose sample does not stand out."""
    judge = OverloadJudge(overload, torch.device("cpu"))
    generator = torch.Generator().manual_seed(0)
    bound = _tried(overload)
    tried = [_right(judge, bound, generator) for _ in range(TRIALS)]
    if any(isinstance(each, Sampled) for each in tried[0].answers.values()):
        return float(not _is_random(tried[0]))
    pairs = [(now.stored(), before.stored()) for now, before in zip(tried[1:], tried, strict=False)]
    wrong = [pair for pair in pairs if any(not _same(pair[0][name], pair[1][name]) for name in pair[0])]
    settled, exact = tried[0].settled(judge), overload.tolerance.rule == "exact"
    missed = [pair for pair in wrong if not any(_stands_out(pair[0][name], pair[1][name], exact) for name in settled)]
    return len(missed) / len(wrong) if wrong else 0.0


@dataclass(frozen=True)
class _Right:
    """Correct answers to one call."""

    answers: dict[str, Answer]
    dtypes: dict[str, str]
    inputs: CallInputs

    def stored(self) -> dict[str, torch.Tensor]:
        """The answers as an entry returns them, without random ones."""
        found = {name: each.value for name, each in self.answers.items() if isinstance(each, Expected)}
        return {name: stored_as(value, getattr(torch, self.dtypes[name])) for name, value in found.items()}

    def settled(self, judge: OverloadJudge) -> list[str]:
        """The outputs that have only one correct value."""
        values = {name: each for name, each in self.answers.items() if isinstance(each, Expected)}
        if judge.canonical is None:
            return [*values]
        plain = {name: each.value for name, each in values.items()}
        forms, _ = in_one_form(judge.canonical, plain, values, self.inputs.arguments())
        return [name for name in plain if name in forms and _same(forms[name], plain[name])]


def _right(judge: OverloadJudge, bound: BoundCase, generator: torch.Generator) -> _Right:
    call = judge.place_inputs(make_inputs(judge.overload, bound, generator, judge.prepare))
    dtypes = {spec.name: spec.dtype for spec in bound.specs}
    dtypes |= {name: spec.dtype for name, spec in zip(call.outputs, call.specs, strict=True)}
    return _Right(dict(call.known) or judge.expected(call.inputs), dtypes, call.inputs)


def _tried(overload: Overload) -> BoundCase:
    """A call with ordinary values, in a timed dtype if a check case has one."""
    cases = expand_cases(overload, DeviceKind.CPU, None, "")
    timed = {case.dtype for case in cases if case.phase == Phase.BENCH}
    check = [case for case in cases if case.phase == Phase.CHECK]
    check = [case for case in check if not case.unjudged] or check
    usual = [case for case in check if case.values == "default" and case.dtype in timed]
    bound = [bind(overload, case) for case in usual or check]
    return max(bound, key=lambda each: (case_bytes(each) <= MOST_BYTES, case_bytes(each)))


def _is_random(right: _Right) -> bool:
    """Whether a sample of random output practically cannot occur twice."""
    for name, each in right.answers.items():
        if isinstance(each, Sampled):
            bits = torch.where(each.free, each.bits(getattr(torch, right.dtypes[name])), 0.0)
            if float(bits.mean()) * SAMPLED >= UNALIKE_BITS:
                return True
    return False


def _same(now: torch.Tensor, before: torch.Tensor) -> bool:
    if now.shape != before.shape:
        return False
    a, b = widened(now), widened(before)
    return bool(((a == b) | ((a != a) & (b != b))).all())


def _stands_out(now: torch.Tensor, before: torch.Tensor, exact: bool) -> bool:
    if now.shape != before.shape:
        return True
    dtype = now.dtype
    units = 0.0
    if not exact and (dtype.is_floating_point or dtype.is_complex):
        units = (NARROW_ROUNDING if dtype.itemsize <= 2 else ROUNDING) * torch.finfo(dtype).eps
    ((apart,),) = differences([now.reshape(1, -1)], [before.reshape(1, -1)])
    return apart > STANDS_OUT * max(units, LEAST_DIFFERENCE)
