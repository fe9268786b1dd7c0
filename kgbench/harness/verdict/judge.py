"""Runs one call on a worker and decides from memory that the referee owns whether it was right."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

import torch

from kgbench.baselines.expected import Answer, Expected
from kgbench.baselines.registry import load_function
from kgbench.core.types import Mismatch, Outcome
from kgbench.harness.verdict.canonical import in_one_form
from kgbench.harness.verdict.compare import Limits, compare
from kgbench.harness.verdict.defences import CONTRACT, FRESH, VALUES
from kgbench.harness.verdict.inputs import GUARD_BYTES, LAZY_BITS, CallInputs, Chunk, itemsize, make_inputs, writable
from kgbench.harness.verdict.loose_compare import compare_as_others
from kgbench.harness.verdict.narrow_dtypes import either
from kgbench.harness.verdict.output_specs import Promise, aten_function, aten_promises
from kgbench.harness.verdict.reference import ReferenceFunction, values_only
from kgbench.harness.wire.buffers import ALIGNMENT_BYTES, encode_tensor, round_up
from kgbench.harness.wire.protocol import decode_scalar
from kgbench.harness.workers.started import Side
from kgbench.problem.cases import BoundCase, Case, bind
from kgbench.problem.model import Overload

SPARE_OUTPUT_BYTES: Final = 4096
"""Room behind an output, so that one of a wrong size still comes across and can be named."""


@dataclass(frozen=True)
class Verdict:
    outcome: Outcome
    reason: str = ""
    mismatch: Mismatch | None = None


PASSED: Final = Verdict(Outcome.PASSED)


@dataclass(frozen=True)
class PlacedCall:
    """One call of a case: inputs drawn, outputs expected, places in the arena."""

    inputs: CallInputs
    promises: tuple[Promise, ...]
    out_offset: int
    out_bytes: int
    listed: bool = False
    """Tensors come back in a list or tuple, even if it is one."""
    remembers: bool = False
    """It will be judged again, so what is right is kept in ``known``."""
    known: dict[str, Answer] = field(default_factory=dict, compare=False)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of what is returned, as references and mismatches have them."""
        several = len(self.promises) != 1 or self.listed
        return tuple(f"return[{index}]" if several else "return" for index in range(len(self.promises)))

    @property
    def end(self) -> int:
        return self.out_offset + self.out_bytes


class OverloadJudge:
    """Everything that judging calls of one overload needs."""

    def __init__(self, overload: Overload, device: torch.device) -> None:
        self.overload = overload
        self.device = device
        self.reference = ReferenceFunction.of(overload)
        self.canonical = None if overload.canonical is None else load_function(overload.canonical)
        self.bases = {0}
        """Every base that arrays of pointers were filled in with."""
        self.without: frozenset[str] = frozenset()
        """Layers of defence that are left out, in a test of the harness."""
        self.plain = overload.signature.returns == "Scalar"
        """The entry returns a Python value."""
        self.listed = overload.signature.returns.startswith(("list", "tuple"))
        self.returns_tensors = overload.signature.returns not in ("None", "Scalar") and not overload.returned_argument

    def place(self, case: Case, generator: torch.Generator) -> PlacedCall:
        """Draw a call's inputs, from the arena's start on, and find room for its outputs behind them."""
        return self.place_inputs(make_inputs(self.overload, bind(self.overload, case), generator))

    def place_inputs(self, inputs: CallInputs) -> PlacedCall:
        """Room for what a call with these inputs returns, behind them."""
        known: dict[str, Answer] = {}
        promises = self.promises(inputs, known)
        out_bytes = SPARE_OUTPUT_BYTES + sum(round_up(promise.nbytes, ALIGNMENT_BYTES) for promise in promises)
        return PlacedCall(inputs, promises, inputs.nbytes, out_bytes if promises else 0, self.listed, known=known)

    def message(self, call: PlacedCall, trusted_reference: bool = False) -> dict[str, Any]:
        message = call.inputs.message(self.overload.name, call.out_offset, call.out_bytes, trusted_reference)
        message["poison"] = [promise.nbytes for promise in call.promises if promise.nbytes]
        if FRESH in self.without:
            message["poison"] = []
        if CONTRACT in self.without:
            message["lenient"] = [promise.dtype for promise in call.promises] or [""]
        message["late"] = bool(call.inputs.bound.case.variables.get("late", False))
        if trusted_reference:
            message["kwargs"] |= self._reference_hints(call)
            return message
        for position, argument in enumerate(call.inputs.bound.arguments):
            chunk = call.inputs.chunks.get(argument.name)
            if chunk is not None and chunk.is_on_host:
                # No GPU's arena can be seen from the host, so its values travel with the call.
                holder, key = (
                    (message["kwargs"], argument.name) if argument.keyword_only else (message["args"], position)
                )
                holder[key] = encode_tensor(chunk.view(chunk.image))
        return message

    def promises(self, inputs: CallInputs, known: dict[str, Answer] | None = None) -> tuple[Promise, ...]:
        """What is to be returned: by ATen's own rules where it is the library, else what reference and file say.

        ``known`` takes the reference's answers where it had to be asked, so that it need not be asked again.
        """
        if not self.returns_tensors:
            return ()
        target = self.overload.baseline.get("cuda", "")
        if target.startswith("aten:") and aten_function(target.removeprefix("aten:")):
            return aten_promises(target.removeprefix("aten:"), inputs, self.keeps_strides)
        variables = inputs.bound.case.variables
        told = [item.shape.evaluate(variables) for item in self.overload.returns if item.shape is not None]
        if told and len(told) == len(self.overload.returns):
            shapes = [tuple(shape) for shape in told]
        else:
            answers = self.expected(inputs)
            if known is not None:
                known.update(answers)
            shapes = [tuple(item.shape) for name, item in answers.items() if name.startswith("return")]
        promises = [Promise(str(inputs.bound.case.dtype), shape, base=self.overload.alias or "") for shape in shapes]
        for index, item in enumerate(self.overload.returns[: len(promises)]):
            parts = {"dtype": item.dtype, "shape": item.shape, "strides": item.strides}
            said = {name: expr.evaluate(variables) for name, expr in parts.items() if expr is not None}
            promises[index] = replace(promises[index], **said)
        return tuple(promises)

    @property
    def keeps_strides(self) -> bool:
        """Whether ATen's strides are promised, too."""
        return self.overload.kind in ("view", "creation") or any(item.as_aten for item in self.overload.returns)

    def fill(self, side: Side, call: PlacedCall) -> None:
        """Write the call's images into the side's arena, and the sentinel where its output will go."""
        arena = side.ensure_arena(call.end)
        self.bases.add(side.base)
        for offset, image in call.inputs.images(side.base):
            arena.bytes_at(offset, image.numel()).copy_(image)
        arena.bytes_at(call.out_offset, call.out_bytes).fill_(0xFF)

    def check(
        self, side: Side, case: Case, call: PlacedCall, generator: torch.Generator, timeout_s: float, reference: bool
    ) -> Verdict:
        """One call, judged; the generator is for a second one where a view is to be proven. Raises WorkerFailed."""
        self.fill(side, call)
        self._synchronize()
        message = {"op": "call", **self.message(call, reference)}
        reply = side.handle.request(message, timeout_s, what(case))
        verdict = self._claims(call, reply)
        if verdict is not PASSED and CONTRACT not in self.without:
            return verdict
        snapshot = self.snapshot(side, call)
        verdict = self.judge(call, snapshot)
        if verdict is PASSED and any(promise.shares for promise in call.promises):
            return self._prove_alias(side, case, call, generator)
        return verdict

    def snapshot(self, side: Side, call: PlacedCall) -> torch.Tensor:
        """A private copy of everything the call could have touched."""
        assert side.arena is not None
        start = call.inputs.start
        return side.arena.bytes_at(start, call.end - start).clone()

    def judge(self, call: PlacedCall, snapshot: torch.Tensor) -> Verdict:
        """From a snapshot alone: nothing changed that may not, and every output right."""
        outputs = self.outputs(call, snapshot)
        return outputs if isinstance(outputs, Verdict) else self.values(call, outputs)

    def conclude(self) -> Verdict:
        """What can only be said of all timed calls of a case together."""
        return PASSED

    def outputs(self, call: PlacedCall, snapshot: torch.Tensor) -> dict[str, torch.Tensor] | Verdict:
        """All outputs by name from a snapshot, or what was changed that may not."""
        outputs: dict[str, torch.Tensor] = {}
        variables = call.inputs.bound.case.variables
        for name, chunk in call.inputs.chunks.items():
            begin = chunk.offset - call.inputs.start
            after = snapshot[begin : begin + chunk.image.numel()]
            change = None if CONTRACT in self.without else forbidden_change(name, chunk, after, variables)
            if change is not None:
                return Verdict(Outcome.INPUT_CHANGED, change)
            if chunk.spec.access != "read":
                outputs[name] = chunk.view(after)
        for name, array in call.inputs.pointers.items():
            begin = array.offset - call.inputs.start
            if not array.is_intact(snapshot[begin : begin + array.nbytes], self.bases):
                return Verdict(Outcome.INPUT_CHANGED, f"changed the array of pointers '{name}', or wrote beside it")
        position = call.out_offset - call.inputs.start
        for name, promise in zip(call.outputs, call.promises, strict=True):
            flat = snapshot[position : position + promise.nbytes].clone()
            outputs[name] = flat.view(getattr(torch, promise.dtype)).reshape(promise.shape)
            position += round_up(promise.nbytes, ALIGNMENT_BYTES)
        return outputs

    def answers(self, call: PlacedCall) -> dict[str, Answer]:
        """What the reference says, which a call that will be judged again keeps."""
        found = dict(call.known) or self.expected(call.inputs)
        if call.remembers:
            call.known.update(found)
        return found

    def values(self, call: PlacedCall, outputs: dict[str, torch.Tensor]) -> Verdict:
        """Whether all outputs are right."""
        variables = call.inputs.bound.case.variables
        if self.plain or variables.get("unjudged") or not self.overload.values_defined:
            return PASSED
        outputs, expected = self.comparable(call, outputs)
        for name, wanted in expected.items():
            got = outputs.get(name)
            if got is None or got.shape != wanted.value.shape:
                return Verdict(Outcome.WRONG_VALUE, f"{name}: no right answer has this canonical form")
            if VALUES in self.without:
                mismatch = compare_as_others(name, got, wanted)
            else:
                mismatch = compare(name, got, wanted, self.limits(call.inputs.bound.case))
            if mismatch is not None:
                return Verdict(Outcome.WRONG_VALUE, mismatch_words(mismatch), mismatch)
        return PASSED

    def comparable(
        self, call: PlacedCall, outputs: dict[str, torch.Tensor]
    ) -> tuple[dict[str, torch.Tensor], dict[str, Expected]]:
        """Outputs and what is right, by the same names, where they are live and in one form."""
        outputs, expected = dict(outputs), values_only(self.answers(call))
        for name in expected:
            if (live := self.live(call, name)) is not None:
                outputs[name] = either(live, outputs[name], torch.zeros_like(outputs[name]))
                expected[name] = expected[name].masked(live)
        if self.canonical is not None:
            return in_one_form(self.canonical, outputs, expected, call.inputs.arguments())
        return outputs, expected

    def expected(self, inputs: CallInputs) -> dict[str, Answer]:
        """What is right, by output: from the reference, which for a view works on storage as the candidate has it."""
        written = written_names(inputs.bound)
        if self.overload.kind == "view" and not written:
            return {name: Expected(view) for name, view in self.reference.views(inputs.stored_arguments()).items()}
        # What a reference creates, it creates where the outputs are.
        with self.device:
            return self.reference.answers(inputs.arguments(), written)

    def limits(self, case: Case) -> Limits:
        """The overload's tolerance with the case's values."""
        tolerance = self.overload.tolerance
        return Limits(
            rule=tolerance.rule,
            length=1.0 if tolerance.length is None else float(tolerance.length.evaluate(case.variables)),
            ulps=tolerance.ulps,
            compute=None if tolerance.compute is None else str(tolerance.compute.evaluate(case.variables)),
            exact=bool(case.variables.get("exact", False)),
        )

    def live(self, call: PlacedCall, name: str) -> torch.Tensor | None:
        """bool, shape of the output: the elements that are judged; None where all are."""
        chunk = call.inputs.chunks.get(name)
        if chunk is None or chunk.spec.live is None:
            return None
        mask = writable(chunk, call.inputs.bound.case.variables)
        view = mask.as_strided(chunk.spec.shape, chunk.spec.strides, chunk.spec.offset)
        return view[list(chunk.spec.slots)] if chunk.spec.slots else view

    def _claims(self, call: PlacedCall, reply: dict[str, Any]) -> Verdict:
        claims = reply.get("outputs")
        if not isinstance(claims, list):
            return Verdict(Outcome.REJECTED, "malformed reply")
        if self.plain:
            return self._plain_value(call, claims)
        if self.overload.returned_argument:
            return self._argument_itself(call, claims)
        if not self.returns_tensors:
            # The entry is `-> None`: what it returns is nobody's business.
            return PASSED
        if len(claims) != len(call.promises):
            words = f"returned {len(claims)} values, {len(call.promises)} tensors are promised"
            return Verdict(Outcome.REJECTED, words)
        for claim, promise in zip(claims, call.promises, strict=True):
            verdict = self._claim(claim, promise)
            if verdict is not PASSED:
                return verdict
        return PASSED

    def _claim(self, claim: Any, promise: Promise) -> Verdict:
        """What the worker says about one output, which may be anything: only the promised words pass."""
        if not isinstance(claim, dict):
            return Verdict(Outcome.REJECTED, "malformed reply")
        kind, shares = claim.get("type"), claim.get("shares")
        if kind != "Tensor":
            return Verdict(Outcome.REJECTED, f"returned {kind}, a plain torch.Tensor is promised")
        if claim.get("device") != self.device.type:
            words = f"returned a tensor on {claim.get('device')}, inputs are on {self.device.type}"
            return Verdict(Outcome.REJECTED, words)
        if claim.get("requires_grad") is not False:
            return Verdict(Outcome.REJECTED, "returned a tensor that requires grad")
        if claim.get("dtype") != promise.dtype:
            return Verdict(Outcome.WRONG_DTYPE, f"returned {claim.get('dtype')}, {promise.dtype} is right")
        if claim.get("shape") != list(promise.shape):
            return Verdict(Outcome.WRONG_SHAPE, f"returned shape {claim.get('shape')}, {list(promise.shape)} is right")
        if not promise.has_strides(claim.get("strides")):
            right = list(promise.strides or ())
            return Verdict(Outcome.WRONG_SHAPE, f"returned strides {claim.get('strides')}, {right} are right")
        if promise.offset is not None and claim.get("offset") != promise.offset:
            words = f"returned storage offset {claim.get('offset')}, {promise.offset} is right"
            return Verdict(Outcome.WRONG_SHAPE, words)
        if claim.get("lazy") != list(promise.lazy):
            words = "returned a tensor whose lazy conjugate or negative bit is set, or is not, otherwise than ATen's"
            return Verdict(Outcome.REJECTED, words)
        if shares and not promise.shares:
            return Verdict(Outcome.REJECTED, "returned a tensor that shares storage with an input")
        return PASSED

    def _plain_value(self, call: PlacedCall, claims: list[Any]) -> Verdict:
        """A Python value: its type and itself, exactly."""
        right = self.reference.value(call.inputs.arguments())
        claim = claims[0] if len(claims) == 1 and isinstance(claims[0], dict) else {}
        if claim.get("type") != type(right).__name__:
            words = f"returned {claim.get('type', f'{len(claims)} values')}, {type(right).__name__} is right"
            return Verdict(Outcome.WRONG_DTYPE, words)
        try:
            got = decode_scalar(claim.get("value"))
        except (TypeError, ValueError):
            return Verdict(Outcome.REJECTED, "malformed reply")
        # As text NaN equals NaN, and -0.0 is not 0.0.
        if type(got) is type(right) and repr(got) == repr(right):
            return PASSED
        return Verdict(Outcome.WRONG_VALUE, f"returned {got!r}, {right!r} is right")

    def _argument_itself(self, call: PlacedCall, claims: list[Any]) -> Verdict:
        """The written argument must come back as it was handed in."""
        name = self.overload.returned_argument
        specs = call.inputs.bound.specs
        index = next(number for number, spec in enumerate(specs) if spec.name == name)
        spec, claim = specs[index], claims[0] if len(claims) == 1 and isinstance(claims[0], dict) else {}
        geometry = [claim.get(key) for key in ("dtype", "shape", "strides", "offset")]
        wanted = [spec.dtype, list(spec.shape), list(spec.strides), spec.offset]
        shares = claim.get("shares")
        shared = not spec.elements or (isinstance(shares, list) and index in shares)
        if claim.get("type") == "Tensor" and geometry == wanted and shared:
            return PASSED
        return Verdict(Outcome.REJECTED, f"did not return '{name}' itself, which it was given and must return")

    def _prove_alias(self, side: Side, case: Case, first: PlacedCall, generator: torch.Generator) -> Verdict:
        """Rewrite the base under the returned view: a view shows the new values, a copy the old ones. Then write
        through it.
        """
        second = self.place(case, generator)
        assert side.arena is not None
        for chunk in second.inputs.chunks.values():
            side.arena.bytes_at(chunk.offset, chunk.image.numel()).copy_(chunk.image)
        side.arena.bytes_at(first.out_offset, first.out_bytes).fill_(0xFF)
        self._synchronize()
        side.handle.request({"op": "copy_out"}, 30.0, what(case))
        verdict = self.judge(second, self.snapshot(side, second))
        if verdict.outcome is Outcome.WRONG_VALUE:
            words = "not a view: after its base was rewritten it still shows the old values"
            return Verdict(Outcome.WRONG_VALUE, words, verdict.mismatch)
        return verdict if verdict is not PASSED else self._prove_writing(side, case, second, generator)

    def _prove_writing(self, side: Side, case: Case, call: PlacedCall, generator: torch.Generator) -> Verdict:
        """Have the worker write through the returned views: the base must hold what was written, and nothing else."""
        assert side.arena is not None
        bases = {name: chunk.image.clone() for name, chunk in call.inputs.chunks.items()}
        position = call.out_offset
        for promise in call.promises:
            written = torch.randint(0, 2, (promise.nbytes,), generator=generator, device=self.device, dtype=torch.uint8)
            side.arena.bytes_at(position, promise.nbytes).copy_(written)
            position += round_up(promise.nbytes, ALIGNMENT_BYTES)
            if not promise.shares:
                continue
            if promise.overlaps:
                # Elements that lie on one another keep whichever was written last.
                return PASSED
            chunk = call.inputs.chunks[promise.base]
            dtype = getattr(torch, promise.dtype)
            storage = bases[promise.base][GUARD_BYTES : chunk.image.numel() - GUARD_BYTES].view(dtype)
            start = storage.storage_offset() + (promise.offset or 0)
            view = storage.as_strided(promise.shape, promise.strides or (), start)
            values = written.view(dtype).reshape(promise.shape)
            view.copy_(LAZY_BITS["conj" if promise.lazy[0] else "neg" if promise.lazy[1] else ""](values))
        self._synchronize()
        side.handle.request({"op": "write_back"}, 30.0, what(case))
        for name, chunk in call.inputs.chunks.items():
            if not torch.equal(side.arena.bytes_at(chunk.offset, chunk.image.numel()), bases[name]):
                return Verdict(Outcome.WRONG_VALUE, f"not a view: what is written through it does not show in '{name}'")
        return PASSED

    def _reference_hints(self, call: PlacedCall) -> dict[str, Any]:
        views = {
            name: [
                list(chunk.spec.shape),
                list(chunk.spec.strides),
                0,
                None if chunk.spec.live is None else chunk.spec.live.text,
                {k: v for k, v in call.inputs.bound.case.variables.items() if isinstance(v, (int, str, bool))},
                list(chunk.spec.slots),
            ]
            for name, chunk in call.inputs.chunks.items()
        }
        returns = [promise.dtype for promise in call.promises]
        return {
            "_views": views,
            "_written": list(written_names(call.inputs.bound)),
            "_returns": returns,
            "_strides": [None if promise.strides is None else list(promise.strides) for promise in call.promises],
            "_alias": any(promise.shares for promise in call.promises),
            "_plain": self.plain,
            "_returned_argument": self.overload.returned_argument,
        }

    def _synchronize(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def forbidden_change(name: str, chunk: Chunk, after: torch.Tensor, variables: dict[str, Any]) -> str | None:
    """Words for the first byte that a call changed and may not, or None. ``after``: the chunk's bytes."""
    changed = after != chunk.image
    if not bool(changed.any()):
        return None
    end = chunk.image.numel() - GUARD_BYTES
    if bool(changed[:GUARD_BYTES].any()):
        return f"wrote in front of '{name}'"
    if bool(changed[end:].any()):
        first = int(changed[end:].nonzero()[0])
        return f"wrote behind the end of '{name}' ({first} bytes past it)"
    size = itemsize(chunk.spec.dtype)
    elements = changed[GUARD_BYTES:end].reshape(-1, size).any(dim=1)
    wrong = elements & ~writable(chunk, variables)
    if not bool(wrong.any()):
        return None
    first = int(wrong.nonzero()[0])
    share = f"{int(wrong.sum())} of {wrong.numel()} elements"
    if chunk.spec.access == "read":
        return f"changed input '{name}' at storage element {first} ({share})"
    return f"wrote outside the region of '{name}' that it may write, at storage element {first} ({share})"


def written_names(bound: BoundCase) -> tuple[str, ...]:
    """Names of the tensors that a call writes."""
    return tuple(spec.name for spec in bound.specs if spec.access != "read")


def warm_up() -> None:
    """Pay once for what torch loads when it first runs an operator without data."""
    torch.ops.aten.add.Tensor(*(torch.empty(1, device="meta") for _ in range(2)))


def mismatch_words(mismatch: Mismatch) -> str:
    where = f"{mismatch.output}{list(mismatch.index)}"
    share = f"{mismatch.wrong_share:.1%} of {list(mismatch.shape)} {mismatch.dtype} wrong"
    return f"{where}: got {mismatch.got}, wanted {mismatch.wanted}, limit {mismatch.limit}; {share}"


def what(case: Case) -> str:
    return f"case {case.id}"
