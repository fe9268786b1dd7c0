"""Whether anything at all about a call may be wrong, asked without waiting for the device.

Each answer that a referee waits for is a turn of all who share the device: with twelve candidates on an H200, comparing
a call took 20 times as long as alone. So all questions are put first, and one answer is waited for; only where that is
yes does the judge look at what is wrong, question by question.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from kgbench.baselines.expected import Expected
from kgbench.harness.verdict.compare import Limits, is_doubtful
from kgbench.harness.verdict.contract import has_changed
from kgbench.harness.verdict.placed_call import PlacedCall


def of_arguments(call: PlacedCall, snapshot: torch.Tensor, bases: set[int]) -> list[torch.Tensor]:
    """bool, no dimensions, for each argument: whether it was changed where it may not be.

    ``bases``: every base that arrays of pointers were filled in with.
    """
    inputs = call.inputs
    flags = [has_changed(each, call.part(snapshot, each), call.case.variables) for each in inputs.chunks.values()]
    return flags + [each.has_changed(call.part(snapshot, each), bases) for each in inputs.pointers.values()]


def of_values(
    outputs: Mapping[str, torch.Tensor], expected: Mapping[str, Expected], limits: Limits
) -> list[torch.Tensor]:
    """bool, no dimensions, for each output that is expected: whether it may be wrong, or is missing."""
    flags = []
    for name, wanted in expected.items():
        got = outputs.get(name)
        if got is None or got.shape != wanted.value.shape:
            flags.append(torch.ones((), dtype=torch.bool, device=wanted.value.device))
        else:
            flags.append(is_doubtful(got, wanted, limits))
    return flags


def any_of(flags: list[torch.Tensor]) -> bool:
    """The one answer that is waited for."""
    return bool(torch.stack(flags).any()) if flags else False
