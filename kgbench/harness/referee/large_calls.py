"""How much memory judging a large call takes, and whether a device has it."""

from __future__ import annotations

from typing import Final

from kgbench.core.details.absence import DeviceMemory
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.output_specs import OutputSpec
from kgbench.problem.cases import BoundCase, case_bytes

COPIES: Final = 5
"""Copies of a call's tensors that judging it takes at most: drawn, handed over, secured, compared, and the answer."""
SAMPLED_COPIES: Final = 3.5
"""The same where some rows alone are compared with the answer."""
WIDE_BYTES: Final = 24
"""Bytes for each element of which the reference is asked: three numbers of 64 bits."""
LARGE_SHARE: Final = 0.5
"""Share of a device's memory that a call of phase ``large`` may take with all copies."""


def needed_gb(judge: OverloadJudge, bound: BoundCase) -> float:
    """Memory that judging the call takes at most, in 10^9 bytes. Nothing is drawn for it."""
    if bound.case.samples is not None:
        return SAMPLED_COPIES * call_bytes(judge, bound) / 1e9
    elements = sum(spec.elements for spec in bound.specs) + sum(each.elements for each in _returned(judge, bound))
    return (COPIES * call_bytes(judge, bound) + WIDE_BYTES * elements) / 1e9


def call_bytes(judge: OverloadJudge, bound: BoundCase) -> int:
    """Bytes of all that a call takes and returns; what only values decide is not counted."""
    return case_bytes(bound) + sum(spec.nbytes for spec in _returned(judge, bound))


def _returned(judge: OverloadJudge, bound: BoundCase) -> list[OutputSpec]:
    return [spec for spec in judge.known_specs(bound) or () if not spec.shares]


def lacks_memory(judge: OverloadJudge, bound: BoundCase, memory_gb: float) -> DeviceMemory | None:
    """That a device of so much memory, in 10^9 bytes, cannot hold a large call; None where it can."""
    least_gb = needed_gb(judge, bound) / LARGE_SHARE
    return None if least_gb <= memory_gb else DeviceMemory(least_gb, memory_gb)
