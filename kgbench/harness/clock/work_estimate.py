"""The least work of a call, from the problem's ``cost`` and from the tensors that the call has. Referee side only."""

from __future__ import annotations

from kgbench.core.errors import ExpressionError
from kgbench.harness.clock.physical_bound import Work
from kgbench.harness.verdict.inputs import itemsize
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.problem.calls import DTYPES
from kgbench.problem.cases import Case, TensorSpec
from kgbench.problem.model import Access, Overload

DECIDING: frozenset[str] = frozenset({"int32", "int64", "bool"})
"""Dtypes of inputs that may decide which elements of the other inputs are read."""


def work_of(overload: Overload, case: Case, call: PlacedCall | None) -> Work | None:
    """The estimate; None where the problem declares no cost."""
    if overload.cost is None or call is None:
        return None
    try:
        declared, flops = (float(expr.evaluate(case.variables)) for expr in (overload.cost.bytes, overload.cost.flops))
    except ExpressionError:
        return None
    specs = [chunk.spec for chunk in call.inputs.chunks.values()]
    named = {*(str(value) for value in case.variables.values()), str(case.dtype)} & {*DTYPES.values()}
    return Work(
        min(declared, _touched(call, specs)),
        flops,
        tuple(sorted(named | {spec.dtype for spec in specs})),
        any(spec.dtype in DECIDING and spec.access == Access.READ and spec.elements > 1 for spec in specs),
    )


def _touched(call: PlacedCall, specs: list[TensorSpec]) -> float:
    """Bytes of all tensors, each element once where it lies, twice where it is read and written."""
    pointers = sum(array.nbytes for array in call.inputs.pointers.values())
    returned = sum(spec.nbytes for spec in call.specs if not spec.shares)
    return pointers + returned + sum(_distinct(spec) * (2 if spec.access == Access.READWRITE else 1) for spec in specs)


def _distinct(spec: TensorSpec) -> int:
    elements = 1
    for size, stride in zip(spec.shape, spec.strides, strict=True):
        elements *= size if stride or not size else 1
    return min(elements, spec.extent) * itemsize(spec.dtype)
