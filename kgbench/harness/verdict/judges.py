"""Chooses the judge of an overload."""

from __future__ import annotations

import torch

from kgbench.core.kinds import Kind
from kgbench.harness.verdict.judge import STRICT_JUDGE, JudgeParts, OverloadJudge
from kgbench.harness.verdict.modules.judge import ModuleJudge
from kgbench.harness.verdict.random.judge import RandomJudge
from kgbench.problem.model import Overload


def judge_for(
    overload: Overload, device: torch.device, weights: str, parts: JudgeParts = STRICT_JUDGE
) -> OverloadJudge:
    """The judge of an overload's kind. ``weights``: the secret that a module's parameters are drawn from.

    Raises ModuleError where a module's file cannot be run.
    """
    if overload.module is not None:
        return ModuleJudge(overload, device, weights, parts)
    return (RandomJudge if overload.kind == Kind.RANDOM else OverloadJudge)(overload, device, parts)
