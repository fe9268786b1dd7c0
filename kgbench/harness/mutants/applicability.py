"""Whether a standard mutant applies to an overload. Referee side.

Facts come from the check cases: dtypes, shapes and layouts of their tensors, and what must be returned. Whether the
cases then tell the mutant from a correct kernel is decided by running it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch

from kgbench.core.kinds import DeviceKind, Kind, Phase
from kgbench.harness.mutants.aten import DIMENSIONS, FEWEST_TERMS, NarrowSums, broadcast, misread, narrowest
from kgbench.harness.mutants.blas import is_symmetric
from kgbench.harness.mutants.standard import TILE
from kgbench.harness.verdict.inputs import CallInputs, make_inputs
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.reference import ReferenceFunction
from kgbench.problem.cases import TensorSpec, bind, expand_cases
from kgbench.problem.model import Access, Overload
from kgbench.problem.mutants import MUTANTS, NEEDS, PLACELESS, VALUELESS

_CONSTANT: Final = ("full", "zeros", "arange")
"""Draws that give the same values each time."""
_FEW_BITS: Final = (*_CONSTANT, "integers", "signs", "distinct", "permutation")
"""Draws whose values bfloat16 holds exactly."""
_WIDE: Final = ("float32", "float64", "complex64", "complex128")
"""dtypes with a longer mantissa than bfloat16 and TF32."""
_DOUBLE: Final = ("float64", "complex128")
"""dtypes with a longer mantissa than float32."""
_SIXTEEN_BIT: Final = ("float16", "bfloat16")
_TRANSPOSES: Final = ("trans", "transa", "transb")
"""Parameters of BLAS routines that say whether a matrix is transposed."""
_FLOATING: Final = (*_WIDE, "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")


@dataclass(frozen=True)
class Output:
    dtype: str
    shape: tuple[int, ...]
    returned: bool
    shares: bool = False
    """True where the output must lie in an input's memory."""

    @property
    def elements(self) -> int:
        return torch.Size(self.shape).numel()


@dataclass(frozen=True)
class CaseFacts:
    """The tensors of one case that have elements."""

    overload: Overload
    read: tuple[TensorSpec, ...]
    written: tuple[TensorSpec, ...]
    outputs: tuple[Output, ...]
    values: dict[str, Any]
    """Arguments that are no tensors, by name."""
    variables: dict[str, Any]
    inputs: CallInputs

    @property
    def is_view(self) -> bool:
        return self.overload.kind == Kind.VIEW and any(output.returned for output in self.outputs)

    @property
    def given(self) -> tuple[TensorSpec, ...]:
        """Tensors whose values a call may depend on."""
        return self.read + tuple(spec for spec in self.written if spec.access == Access.READWRITE)

    def differs(self, spec: TensorSpec) -> bool:
        return spec.draw.name not in _CONSTANT or self.overload.prepare is not None

    def rounds(self, dtypes: tuple[str, ...]) -> bool:
        """Whether an input of these dtypes loses bits, and no output has a narrower floating dtype that hides it."""
        narrower = set(_FLOATING) - set(dtypes)
        if self.is_view or any(output.dtype in narrower for output in self.outputs):
            return False
        return any(spec.dtype in dtypes and spec.draw.name not in _FEW_BITS for spec in self.given)

    def strided(self, spec: TensorSpec) -> bool:
        """Whether some input is strided. For ATen's operators, which take any layout, a lack of strided cases is a gap
        of the problem.
        """
        any_layout = self.overload.baseline.get("cuda", "").startswith("aten:") and len(spec.shape) > 0
        return not self.is_view and spec.dtype in _FLOATING and (any_layout or not spec.contiguous)

    @property
    def is_aten(self) -> bool:
        return self.overload.baseline.get("cuda", "").startswith("aten:")

    @property
    def is_random(self) -> bool:
        return self.overload.kind == Kind.RANDOM

    def chooses_dimension(self) -> bool:
        """Whether a dimension is chosen by number among several, so that counting from the other end differs."""
        numbered = any(self.values.get(name) not in (None, ()) for name in DIMENSIONS)
        return numbered and any(len(spec.shape) > 1 for spec in self.inputs.bound.specs)

    def broadcasts(self) -> bool:
        """Whether an operand is broadcast in a way that reading it in the result's layout gets wrong."""
        shapes = [spec.shape for spec in self.inputs.bound.specs]
        common = broadcast(shapes)
        if self.is_view or common is None or any(output.shape != common for output in self.outputs):
            return False
        return bool(self.outputs) and any(misread(spec.shape, common) for spec in self.read)

    def longest_narrow_sum(self) -> int:
        """The terms of the longest sum in the reference where inputs are of 16 bits."""
        if self.is_view or self.is_random or not self.is_aten:
            return 0
        arguments = self.inputs.arguments()
        counter = NarrowSums(narrowest(arguments.values()), rounds=False)
        written = tuple(spec.name for spec in self.inputs.bound.specs if spec.access != Access.READ)
        with counter:
            ReferenceFunction.of(self.overload).answers(arguments, written)
        return counter.terms

    def has(self, *parameters: str) -> bool:
        """Whether it is a BLAS routine with one of these parameters."""
        is_blas = self.overload.baseline.get("cuda", "").startswith("cublas:")
        return is_blas and any(name in self.values for name in parameters)

    def conjugates(self) -> bool:
        """Whether it is a BLAS routine that conjugates, always or where a flag says so."""
        by_flag = self.has(*_TRANSPOSES) and not is_symmetric(self.values)
        return self._is_complex() and (by_flag or self._conjugates_always())

    def may_not_conjugate(self) -> bool:
        return self._is_complex() and not self._conjugates_always()

    def sums_in_float32(self) -> bool:
        """Whether it is a product of 16-bit matrices whose sums the contract keeps in float32."""
        compute = self.overload.tolerance.compute
        wide = compute is None or compute.evaluate(self.variables) != "float16"
        return self.has("transa") and "k" in self.values and wide and any(s.dtype in _SIXTEEN_BIT for s in self.read)

    def _conjugates_always(self) -> bool:
        return any(part in self.overload.signature.name for part in ("dotc", "gerc"))

    def _is_complex(self) -> bool:
        tensors = self.read + self.written
        return self.has("m", "n") and any(spec.dtype.startswith("complex") for spec in tensors)


def _gaps(spec: TensorSpec) -> bool:
    return spec.live is not None or bool(spec.slots) or spec.elements < spec.extent - spec.offset


HAS: Final[dict[str, Callable[[CaseFacts], bool]]] = {
    "anything": lambda seen: True,
    "input": lambda seen: bool(seen.read),
    "values": lambda seen: any(seen.differs(spec) for spec in seen.given),
    "wide input": lambda seen: seen.rounds(_WIDE),
    "float64 input": lambda seen: seen.rounds(_DOUBLE),
    "strided input": lambda seen: any(seen.strided(spec) for spec in seen.read),
    "several elements": lambda seen: any(output.elements > 1 for output in seen.outputs),
    "long output": lambda seen: any(output.elements > TILE for output in seen.outputs),
    "rows": lambda seen: any(len(output.shape) > 1 for output in seen.outputs),
    "matrix": lambda seen: any(len(output.shape) > 1 and min(output.shape[-2:]) > 1 for output in seen.outputs),
    "floating output": lambda seen: any(output.dtype in _FLOATING for output in seen.outputs),
    "wide output": lambda seen: any(output.dtype in _WIDE for output in seen.outputs) and not seen.is_view,
    "several outputs": lambda seen: len(seen.outputs) > 1,
    "returned": lambda seen: not seen.is_view and any(output.returned for output in seen.outputs),
    "returned array": lambda seen: (
        not seen.is_view and any(output.returned and len(output.shape) != 1 for output in seen.outputs)
    ),
    "gaps": lambda seen: any(_gaps(spec) for spec in seen.written),
    "view": lambda seen: seen.is_view or any(output.shares for output in seen.outputs),
    "alpha": lambda seen: seen.has("alpha") or (seen.is_aten and "alpha" in seen.values),
    "keepdim": lambda seen: "keepdim" in seen.values,
    "dimension": lambda seen: seen.chooses_dimension(),
    "list of tensors": lambda seen: any("[" in spec.name for spec in seen.read) and not seen.is_view,
    "offset": lambda seen: not seen.is_view and any(spec.offset and spec.dtype in _FLOATING for spec in seen.read),
    "broadcast": lambda seen: seen.broadcasts(),
    "rounded quotient": lambda seen: (
        seen.overload.signature.name.startswith("floor_divide") or seen.values.get("rounding_mode") == "floor"
    ),
    "narrow sums": lambda seen: seen.longest_narrow_sum() >= FEWEST_TERMS,
    "chance": lambda seen: seen.is_random,
    "generator": lambda seen: seen.is_random and seen.values.get("generator") is not None,
    "Python value": lambda seen: seen.overload.signature.returns == "Scalar",
    "beta": lambda seen: seen.has("beta"),
    "transpose": lambda seen: seen.has(*_TRANSPOSES),
    "conjugate": lambda seen: seen.conjugates(),
    "no conjugate": lambda seen: seen.may_not_conjugate(),
    "triangle": lambda seen: seen.has("uplo"),
    "diagonal": lambda seen: seen.has("diag"),
    "side": lambda seen: seen.has("side", "mode"),
    "leading dimension": lambda seen: seen.has("lda", "ldb", "ldc"),
    "batch": lambda seen: seen.has("batchCount"),
    "increment": lambda seen: seen.has("incx", "incy"),
    "inner size": lambda seen: seen.has("k"),
    "float32 sums": lambda seen: seen.sums_in_float32(),
}
"""For each need of kgbench/problem/mutants.py, the test whether a case meets it."""


def why_not(mutant: str, overload: Overload) -> str:
    """Why a mutant does not apply to an overload; empty when it does, and for no mutant."""
    if not mutant:
        return ""
    need = MUTANTS[mutant].needs
    if words := _of_kind(mutant, overload):
        return f"not applicable: {words}"
    return "" if any(HAS[need](seen) for seen in _cases(overload)) else f"not applicable: {NEEDS[need]}"


def _of_kind(mutant: str, overload: Overload) -> str:
    """Why a mutant cannot show in an operator of this kind, whatever its cases are."""
    if overload.signature.returns == "Scalar" and MUTANTS[mutant].needs != "Python value":
        return "the result is a Python value"
    if not overload.values_defined and mutant not in VALUELESS:
        return "no value of the result is defined"
    if overload.kind == Kind.RANDOM and mutant in PLACELESS:
        return "chance decides the values"
    return ""


def _cases(overload: Overload) -> Iterator[CaseFacts]:
    """What each check case has, small enough to be made on the CPU."""
    judge = OverloadJudge(overload, torch.device("cpu"))
    generator = torch.Generator("cpu").manual_seed(0)
    for case in expand_cases(overload, DeviceKind.CPU, None, "facts"):
        if case.phase != Phase.CHECK:
            continue
        bound = bind(overload, case)
        specs = bound.specs
        written = [spec for spec in specs if spec.access != Access.READ]
        inputs = make_inputs(overload, bound, generator)
        returned = judge.output_specs(inputs)
        outputs = [Output(spec.dtype, spec.shape, False) for spec in written]
        outputs += [Output(spec.dtype, spec.shape, True, spec.shares) for spec in returned]
        yield CaseFacts(
            overload,
            tuple(spec for spec in specs if spec.access == Access.READ and spec.elements),
            tuple(spec for spec in written if spec.elements),
            tuple(output for output in outputs if output.elements),
            {each.name: each.value for each in bound.arguments if not each.specs},
            case.variables,
            inputs,
        )
