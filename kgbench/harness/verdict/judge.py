"""Runs one call on a worker and decides from memory that the referee owns whether it was correct."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from kgbench.baselines.expected import Answer, Expected
from kgbench.baselines.registry import load_function
from kgbench.core.details.outputs import Alias, Aliasing, Guard, InputChanged, PointersChanged
from kgbench.core.details.values import Mismatch, NoCanonicalForm, RootMeanSquare
from kgbench.core.kinds import Kind
from kgbench.core.outcomes import Outcome
from kgbench.core.verdicts import PASSED, Verdict
from kgbench.harness.machine import trace
from kgbench.harness.verdict import doubts
from kgbench.harness.verdict.call_requests import CallRequests, written_names
from kgbench.harness.verdict.canonical import in_one_form
from kgbench.harness.verdict.collecting import Collector
from kgbench.harness.verdict.compare import Limits, compare
from kgbench.harness.verdict.contract import OutputContract, forbidden_change
from kgbench.harness.verdict.inputs import CallInputs, Chunk, make_inputs, writable
from kgbench.harness.verdict.narrow_dtypes import either
from kgbench.harness.verdict.output_specs import OutputSpec, aten_function, aten_specs, specs_without_data
from kgbench.harness.verdict.placed_call import PlacedCall, synchronize
from kgbench.harness.verdict.reference import ReferenceFunction, values_only
from kgbench.harness.verdict.subnormals import with_zeros
from kgbench.harness.verdict.views import prove_views
from kgbench.harness.wire.buffers import ALIGNMENT_BYTES, round_up
from kgbench.harness.wire.requests import PlaceOutputs
from kgbench.harness.workers.started import WorkerSide
from kgbench.problem.cases import BoundCase, Case, OtherValues, bind
from kgbench.problem.model import Access, Overload

KEPT_BYTES: Final = 128 << 20
"""Largest call, in bytes of its inputs and outputs, whose answers are kept, in float64, by each referee."""
SPARE_OUTPUT_BYTES: Final = 4096
"""Bytes of spare memory behind a call's outputs, so that one of a wrong size still comes across and can be named."""


ForbiddenChange = Callable[[str, Chunk, torch.Tensor, dict[str, Any]], Guard | InputChanged | None]
"""The type of ``forbidden_change``: what a call changed of one argument and may not."""
Compare = Callable[[str, torch.Tensor, Expected, Limits], Mismatch | RootMeanSquare | None]
"""The type of ``compare``. Takes an output's name, its values, the expected values and the limits; returns what is
wrong.
"""


@dataclass(frozen=True)
class JudgeParts:
    """The functions that a judge is made of."""

    contract: Callable[[Overload, torch.device, ReferenceFunction], OutputContract] = OutputContract
    requests: Callable[[Overload, OutputContract], CallRequests] = CallRequests
    forbidden_change: ForbiddenChange = forbidden_change
    compare: Compare = compare
    other_values: Callable[[Overload], OtherValues] = OtherValues
    collector: Callable[[torch.device], Collector] = Collector


STRICT_JUDGE: Final = JudgeParts()
"""The parts that every verdict on a candidate is made with."""


class OverloadJudge:
    """Everything that judging calls of one overload needs."""

    def __init__(self, overload: Overload, device: torch.device, parts: JudgeParts = STRICT_JUDGE) -> None:
        self.overload = overload
        self.device = device
        self.reference = self.reference_of(overload)
        self.prepare = None if overload.prepare is None else load_function(overload.prepare)
        """Finishes drawn inputs: takes arguments by name, the case's variables and the generator."""
        self.canonical = None if overload.canonical is None else load_function(overload.canonical)
        self.bases = {0}
        """Every base that arrays of pointers were filled in with."""
        self.other_values = parts.other_values(overload)
        self.contract = parts.contract(overload, device, self.reference)
        self.requests = parts.requests(overload, self.contract)
        self.forbidden_change = parts.forbidden_change
        self.compare = parts.compare
        self.in_one = parts.forbidden_change is forbidden_change and parts.compare is compare
        """Whether a call is first asked for anything wrong at all, which the usual parts alone can answer."""
        self.collector = parts.collector(device)
        self.listed = overload.signature.returns.startswith(("list", "tuple"))

    def reference_of(self, overload: Overload) -> ReferenceFunction:
        """The source of correct answers: the problem's reference."""
        return ReferenceFunction.of(overload)

    @property
    def unjudgeable(self) -> str:
        """Why calls cannot be judged by their values; empty where they can."""
        return ""

    @trace.span("draw")
    def place(self, case: Case, generator: torch.Generator) -> PlacedCall:
        """Draw a call's inputs, from the buffer's start on, and find room for its outputs behind them."""
        return self.place_inputs(make_inputs(self.overload, bind(self.overload, case), generator, self.prepare))

    def place_inputs(self, inputs: CallInputs) -> PlacedCall:
        """Place the outputs of a call with these inputs, after the inputs."""
        known: dict[str, Answer] = {}
        specs = self.output_specs(inputs, known)
        out_bytes = SPARE_OUTPUT_BYTES + sum(round_up(spec.nbytes, ALIGNMENT_BYTES) for spec in specs)
        return PlacedCall(inputs, specs, inputs.nbytes, out_bytes if specs else 0, self.listed, known=known)

    def output_specs(self, inputs: CallInputs, known: dict[str, Answer] | None = None) -> tuple[OutputSpec, ...]:
        """Specs of what is to be returned: by ATen's rules where it is the library, else from reference and problem
        file.

        ``known`` receives the reference's answers where it had to be called, so that it need not be called again.
        """
        specs = self.known_specs(inputs.bound)
        if specs is not None:
            return specs
        target = self.overload.baseline.get("cuda", "")
        if target.startswith("aten:") and aten_function(target.removeprefix("aten:")):
            return aten_specs(target.removeprefix("aten:"), inputs, self.keeps_strides)
        answers = self.expected(inputs)
        if known is not None:
            known.update(answers)
        shapes = [tuple(item.shape) for name, item in answers.items() if name.startswith("return")]
        return self._specs_of(inputs.bound, shapes)

    def known_specs(self, bound: BoundCase) -> tuple[OutputSpec, ...] | None:
        """Specs of what is to be returned, before anything is drawn; None where values decide it."""
        if not self.contract.returns_tensors:
            return ()
        target = self.overload.baseline.get("cuda", "")
        function = aten_function(target.removeprefix("aten:")) if target.startswith("aten:") else None
        if function is not None:
            return specs_without_data(function, bound, self.keeps_strides)
        variables = bound.case.variables
        told = [item.shape.evaluate(variables) for item in self.overload.returns if item.shape is not None]
        if not told or len(told) < len(self.overload.returns):
            return None
        return self._specs_of(bound, [tuple(shape) for shape in told])

    def _specs_of(self, bound: BoundCase, shapes: list[tuple[int, ...]]) -> tuple[OutputSpec, ...]:
        """Specs of outputs of these shapes, with all else that the problem file says of them."""
        variables = bound.case.variables
        specs = [OutputSpec(str(bound.case.dtype), shape, base=self.overload.alias or "") for shape in shapes]
        for index, item in enumerate(self.overload.returns[: len(specs)]):
            parts = {"dtype": item.dtype, "shape": item.shape, "strides": item.strides}
            said = {name: expr.evaluate(variables) for name, expr in parts.items() if expr is not None}
            specs[index] = replace(specs[index], **said)
        return tuple(specs)

    @property
    def keeps_strides(self) -> bool:
        """Whether ATen's strides are part of the contract."""
        return self.overload.kind in (Kind.VIEW, Kind.CREATION) or any(item.as_aten for item in self.overload.returns)

    @trace.span("fill")
    def fill(self, side: WorkerSide, call: PlacedCall) -> None:
        """Write the call's images into the side's buffer, and the sentinel where its output will go."""
        buffer = side.ensure_buffer(call.end)
        self.bases.add(side.base)
        for offset, image in call.inputs.images(side.base):
            buffer.bytes_at(offset, image.numel()).copy_(image)
        buffer.bytes_at(call.out_offset, call.out_bytes).fill_(0xFF)

    def check(
        self,
        side: WorkerSide,
        case: Case,
        call: PlacedCall,
        generator: torch.Generator,
        timeout_s: float,
        reference: bool,
    ) -> Verdict:
        """One call, judged; the generator is for a second one where views are to be proven. Raises WorkerFailed."""
        self.fill(side, call)
        synchronize(self.device)
        reply = side.handle.request(self.requests.call(call, reference), timeout_s, call.where)
        verdict = self.contract.check(call, reply)
        if verdict is not PASSED:
            return verdict
        claims = self.collector.claims(reply)
        verdict = self.judge(call, self.collector.collect(side, call, claims, timeout_s))
        if verdict.outcome is Outcome.WRONG_VALUE and self._is_correct_with_inputs(side, call, timeout_s):
            wrong = verdict.detail if isinstance(verdict.detail, Mismatch) else None
            name = "return" if wrong is None else wrong.output
            return replace(verdict, detail=Alias(name, Aliasing.CHANGES_WITH_INPUTS, wrong))
        if verdict is PASSED and claims and any(spec.shares for spec in call.specs):
            return prove_views(side, self.place(case, generator), claims, self.judge)
        return verdict

    def _is_correct_with_inputs(self, side: WorkerSide, call: PlacedCall, timeout_s: float) -> bool:
        """Whether a wrong call's outputs are correct when they are copied again with the inputs in their place."""
        if not any(spec.nbytes and not spec.shares for spec in call.specs):
            return False
        side.handle.request(PlaceOutputs(), timeout_s, call.where)
        return self.judge(call, call.snapshot(side)) is PASSED

    @trace.span("compare")
    def judge(self, call: PlacedCall, snapshot: torch.Tensor) -> Verdict:
        """The verdict from a snapshot alone: whether nothing changed that may not, and every output is correct."""
        if not call.remembers and call.end <= KEPT_BYTES:
            # What is asked of the reference here is not asked a second time below.
            call = replace(call, remembers=True, known=dict(call.known))
        if self.in_one and not doubts.any_of(self._doubts(call, snapshot)):
            return PASSED
        outputs = self.outputs(call, snapshot)
        return outputs if isinstance(outputs, Verdict) else self.values(call, outputs)

    def _doubts(self, call: PlacedCall, snapshot: torch.Tensor) -> list[torch.Tensor]:
        """bool, no dimensions: whether ``outputs`` or ``values`` find something wrong."""
        flags = doubts.of_arguments(call, snapshot, self.bases)
        if self._has_values(call):
            found = self.comparable(call, self._outputs(call, snapshot))
            flags += doubts.of_values(*found, self.limits(call.case))
        return flags

    def judge_suspect(self, call: PlacedCall, snapshot: torch.Tensor, name: str, sampled: torch.Tensor) -> Verdict:
        """A timed call that some elements of one output speak against. ``sampled``: their places in row-major order."""
        return self.judge(call, snapshot)

    def conclude(self) -> Verdict:
        """The verdict on all timed calls of a case together."""
        return PASSED

    def outputs(self, call: PlacedCall, snapshot: torch.Tensor) -> dict[str, torch.Tensor] | Verdict:
        """All outputs by name from a snapshot, or a verdict on a forbidden change."""
        variables = call.case.variables
        for name, chunk in call.inputs.chunks.items():
            change = self.forbidden_change(name, chunk, call.part(snapshot, chunk), variables)
            if change is not None:
                return Verdict(Outcome.INPUT_CHANGED, change)
        for name, array in call.inputs.pointers.items():
            if not array.is_intact(call.part(snapshot, array), self.bases):
                return Verdict(Outcome.INPUT_CHANGED, PointersChanged(name))
        return self._outputs(call, snapshot)

    def _outputs(self, call: PlacedCall, snapshot: torch.Tensor) -> dict[str, torch.Tensor]:
        """All outputs by name from a snapshot."""
        chunks = call.inputs.chunks.items()
        written = {name: chunk for name, chunk in chunks if chunk.spec.access != Access.READ}
        outputs = {name: chunk.view(call.part(snapshot, chunk)) for name, chunk in written.items()}
        position = call.out_offset - call.inputs.start
        for name, spec in zip(call.outputs, call.specs, strict=True):
            flat = snapshot[position : position + spec.nbytes]
            flat = flat.clone() if call.inputs.samples is None else flat
            outputs[name] = flat.view(getattr(torch, spec.dtype)).reshape(spec.shape)
            position += round_up(spec.nbytes, ALIGNMENT_BYTES)
        return outputs

    def answers(self, call: PlacedCall) -> dict[str, Answer]:
        """The reference's answers; they are kept with a call that is judged again."""
        found = dict(call.known) or self.expected(call.inputs)
        if call.remembers:
            call.known.update(found)
        return found

    def _has_values(self, call: PlacedCall) -> bool:
        """Whether outputs are tensors with values that are judged."""
        return not (self.contract.plain or call.case.unjudged) and self.overload.values_defined

    def values(self, call: PlacedCall, outputs: dict[str, torch.Tensor]) -> Verdict:
        """Whether all outputs are correct."""
        if not self._has_values(call):
            return PASSED
        outputs, expected = self.comparable(call, outputs)
        for name, wanted in expected.items():
            got = outputs.get(name)
            if got is None or got.shape != wanted.value.shape:
                return Verdict(Outcome.WRONG_VALUE, NoCanonicalForm(name))
            mismatch = self.compare(name, got, wanted, self.limits(call.case))
            if mismatch is not None and self.overload.subnormals_may_be_zero and self.canonical is None:
                wanted = self._with_zeros(call, outputs, expected)[name]
                mismatch = self.compare(name, got, wanted, self.limits(call.case))
            if mismatch is not None:
                return Verdict(Outcome.WRONG_VALUE, mismatch)
        return PASSED

    def _with_zeros(
        self, call: PlacedCall, outputs: dict[str, torch.Tensor], expected: dict[str, Expected]
    ) -> dict[str, Expected]:
        """What is correct, also with zeros for subnormal numbers. Asked only of outputs that are wrong without."""
        written = written_names(call.inputs.bound)

        def answer(arguments: Mapping[str, Any]) -> dict[str, Expected]:
            with self.device:
                found = values_only(self.reference.answers(arguments, written))
            lives = {name: call.inputs.judged(self.live(call, name)) for name in found}
            return {name: each if (at := lives[name]) is None else each.masked(at) for name, each in found.items()}

        return with_zeros(expected, outputs, call.inputs.judged_arguments(), answer)

    def comparable(
        self, call: PlacedCall, outputs: dict[str, torch.Tensor]
    ) -> tuple[dict[str, torch.Tensor], dict[str, Expected]]:
        """Outputs and what is correct, by the same names, where they are live and in one form."""
        inputs, expected = call.inputs, values_only(self.answers(call))
        outputs = {name: inputs.judged(output) for name, output in outputs.items()}
        for name in expected:
            if (live := inputs.judged(self.live(call, name))) is not None:
                outputs[name] = either(live, outputs[name], torch.zeros_like(outputs[name]))
                expected[name] = expected[name].masked(live)
        if self.canonical is not None:
            return in_one_form(self.canonical, outputs, expected, inputs.judged_arguments())
        return outputs, expected

    @trace.span("oracle")
    def expected(self, inputs: CallInputs) -> dict[str, Answer]:
        """What is correct, by output: from the reference, which for a view works on storage as the candidate has it."""
        written = written_names(inputs.bound)
        if self.overload.kind == Kind.VIEW and not written:
            return {name: Expected(view) for name, view in self.reference.views(inputs.stored_arguments()).items()}
        # What a reference creates, it creates where the outputs are.
        with self.device:
            return self.reference.answers(inputs.judged_arguments(), written)

    def limits(self, case: Case) -> Limits:
        """The overload's tolerance with the case's values."""
        tolerance = self.overload.tolerance
        return Limits(
            rule=tolerance.rule,
            length=1.0 if tolerance.length is None else float(tolerance.length.evaluate(case.variables)),
            ulps=tolerance.ulps,
            compute=None if tolerance.compute is None else str(tolerance.compute.evaluate(case.variables)),
            exact=case.exact,
        )

    def live(self, call: PlacedCall, name: str) -> torch.Tensor | None:
        """bool, shape of the output: the elements that are judged; None where all are."""
        chunk = call.inputs.chunks.get(name)
        if chunk is None or chunk.spec.live is None:
            return None
        mask = writable(chunk, call.case.variables)
        view = mask.as_strided(chunk.spec.shape, chunk.spec.strides, chunk.spec.offset)
        return view[list(chunk.spec.slots)] if chunk.spec.slots else view


def warm_up() -> None:
    """Load now what torch loads when it first runs an operator without data."""
    torch.ops.aten.add.Tensor(*(torch.empty(1, device="meta") for _ in range(2)))
