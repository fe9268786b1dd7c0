"""How large a call may be: what prompts promise of sizes, and whether a case keeps to it."""

from __future__ import annotations

from typing import Final

from kgbench.problem.cases.concrete import BoundCase, TensorSpec, case_bytes
from kgbench.problem.cases.layout import last_place
from kgbench.problem.model import PassedAs

CALL_GB: Final = 20
"""Memory that all tensors of a call take together at most, results and gaps included, in 10^9 bytes."""
MOST_ELEMENTS: Final = 4_500_000_000
"""Elements that a tensor has at most, and that its last one lies behind its first at most; some more than 2^32."""


def reach(spec: TensorSpec) -> int:
    """The last element's place in storage; behind pointers in that of one matrix, each of which has its own address."""
    if not spec.elements:
        return 0
    matrices = 1 if spec.passed == PassedAs.POINTERS else 0
    return spec.offset + last_place(spec.shape[matrices:], spec.strides[matrices:])


def too_large(bound: BoundCase, returned_bytes: int = 0) -> str | None:
    """What of a call is larger than prompts promise; None where nothing is. Results are counted as they are given."""
    if (gb := (case_bytes(bound) + returned_bytes) / 1e9) > CALL_GB:
        return f"its tensors take {gb:.3g} GB together, and prompts promise at most {CALL_GB}"
    for spec in bound.specs:
        if (count := max(spec.elements, reach(spec))) > MOST_ELEMENTS:
            return f"{spec.name} reaches over {count:,} elements, and prompts promise at most {MOST_ELEMENTS:,}"
    return None
