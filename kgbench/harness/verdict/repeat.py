"""The same call twice: both answers must be correct, and whether they are the same bit for bit is a fact. Referee side.

Sums whose order is left to the hardware (float atomics) differ in their last bits, and honest kernels use them; so
different bits alone are no verdict. What is beyond the limit the second time is wrong, as it would be the first time.
"""

from __future__ import annotations

from dataclasses import replace

import torch

from kgbench.core.kinds import Kind
from kgbench.core.verdicts import PASSED, Verdict
from kgbench.harness.verdict.judge import KEPT_BYTES, OverloadJudge
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.workers.started import WorkerSide
from kgbench.problem.cases import Case


def can_repeat(judge: OverloadJudge, call: PlacedCall) -> bool:
    """Whether a call can be repeated: its outputs are tensors that the input decides, and a second call leaves the
    first one's alone.
    """
    if call.end > KEPT_BYTES:
        return False
    decided = judge.overload.kind == Kind.COMPUTE and judge.overload.values_defined and not judge.contract.plain
    return decided and not any(spec.shares for spec in call.specs)


def judge_repetition(
    judge: OverloadJudge, side: WorkerSide, case: Case, call: PlacedCall, generator: torch.Generator, timeout_s: float
) -> tuple[Verdict, bool | None]:
    """A call that was just right once more: its verdict, and whether all bits are as before. Raises WorkerFailed."""
    before = call.snapshot(side)
    verdict = judge.check(side, case, call, generator, timeout_s, False)
    if verdict is not PASSED:
        return replace(verdict, where=replace(call.where, repeated=True)), None
    return PASSED, _same_bits(judge, call, before, call.snapshot(side))


def _same_bits(judge: OverloadJudge, call: PlacedCall, before: torch.Tensor, after: torch.Tensor) -> bool | None:
    """Whether what is judged has the same bits, in the form in which it is judged; None where one is no answer."""
    found = [judge.outputs(call, snapshot) for snapshot in (before, after)]
    answers = [judge.comparable(call, each)[0] for each in found if not isinstance(each, Verdict)]
    if len(answers) < 2:
        return None
    first, second = answers
    return all(_equal(first[name], second[name]) for name in first)


def _equal(first: torch.Tensor, second: torch.Tensor) -> bool:
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    return torch.equal(*(_bytes_of(each) for each in (first, second)))


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    # One element counts as contiguous whatever its stride, which PyTorch does not let pass for bytes.
    return tensor.contiguous().as_strided((tensor.numel(),), (1,)).view(torch.uint8)
