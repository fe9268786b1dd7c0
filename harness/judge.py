"""Runs one call on a worker and decides from memory that the referee owns whether it was right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.registry import load_function
from kgbench.cases import BoundCase, Case, bind
from kgbench.harness.arena import ALIGNMENT_BYTES, Arena, create_arena, encode_tensor, round_up
from kgbench.harness.canonical import in_one_form
from kgbench.harness.compare import Limits, compare
from kgbench.harness.handle import WorkerHandle
from kgbench.harness.inputs import GUARD_BYTES, CallInputs, Chunk, itemsize, make_inputs, writable
from kgbench.harness.reference import ReferenceFunction
from kgbench.problem import Overload
from kgbench.types import Mismatch, Outcome

SPARE_OUTPUT_BYTES: Final = 4096
"""Room behind an output, so that one of a wrong size still comes across and can be named."""


@dataclass(frozen=True)
class Verdict:
    outcome: Outcome
    reason: str = ""
    mismatch: Mismatch | None = None


PASSED: Final = Verdict(Outcome.PASSED)


@dataclass(frozen=True)
class Promise:
    """What a returned tensor must look like."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    """Only where the problem promises them: views."""


@dataclass(frozen=True)
class PlacedCall:
    """One call of a case: inputs drawn, outputs expected, places in the arena."""

    inputs: CallInputs
    promises: tuple[Promise, ...]
    out_offset: int
    out_bytes: int
    remembers: bool = False
    """It will be judged again, so what is right is kept in ``known``."""
    known: dict[str, Expected] = field(default_factory=dict, compare=False)

    @property
    def end(self) -> int:
        return self.out_offset + self.out_bytes


@dataclass
class Side:
    """A worker together with the arena it shares with the referee."""

    handle: WorkerHandle
    device_kind: str
    device_index: int = 0
    arena: Arena | None = None
    base: int = 0
    """Where the worker says it has the arena: arrays of pointers count from there. A lie harms its own call alone."""
    warm: set[str] = field(default_factory=set)
    """Classes of calls that have been through compilation."""

    def ensure_arena(self, nbytes: int) -> Arena:
        """An arena of at least ``nbytes``, mapped on both sides. Raises WorkerFailed."""
        if self.arena is None or self.arena.nbytes < nbytes:
            self.release()
            self.arena = create_arena(self.device_kind, nbytes, self.device_index)
            message = {"op": "map", "nbytes": self.arena.nbytes}
            reply = self.handle.request(message, 60.0, "mapping memory", (self.arena.fd,))
            address = reply.get("address")
            self.base = address if type(address) is int and 0 <= address < 2**62 else 0
        return self.arena

    def unmap(self) -> None:
        """Unmap both halves; the next call maps anew. Raises WorkerFailed."""
        if self.arena is not None:
            self.handle.request({"op": "unmap"}, 60.0, "unmapping memory")
            self.release()

    def release(self) -> None:
        """Unmap the referee's half."""
        arena, self.arena = self.arena, None
        if arena is not None:
            arena.release()


class OverloadJudge:
    """Everything that judging calls of one overload needs."""

    def __init__(self, overload: Overload, device: torch.device) -> None:
        self.overload = overload
        self.device = device
        self.reference = ReferenceFunction(overload.reference)
        self.canonical = None if overload.canonical is None else load_function(overload.canonical)
        self.bases = {0}
        """Every base that arrays of pointers were filled in with."""
        self.written = tuple(
            argument.name for argument in overload.arguments if getattr(argument, "access", "read") != "read"
        )

    def place(self, case: Case, generator: torch.Generator) -> PlacedCall:
        """Draw a call's inputs, from the arena's start on, and find room for its outputs behind them."""
        inputs = make_inputs(self.overload, bind(self.overload, case), generator)
        promises = self.promises(inputs)
        out_bytes = SPARE_OUTPUT_BYTES
        for promise in promises:
            nbytes = torch.Size(promise.shape).numel() * itemsize(promise.dtype)
            out_bytes += round_up(nbytes, ALIGNMENT_BYTES)
        return PlacedCall(inputs, promises, inputs.nbytes, out_bytes if promises else 0)

    def message(self, call: PlacedCall, trusted_reference: bool = False) -> dict[str, Any]:
        message = call.inputs.message(self.overload.name, call.out_offset, call.out_bytes, trusted_reference)
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

    def promises(self, inputs: CallInputs) -> tuple[Promise, ...]:
        """What is to be returned: from ATen's own rules on tensors without data, else the reference's shape."""
        if self.written:
            return ()
        target = self.overload.baseline.get("cuda", "")
        arguments = inputs.arguments()
        if target.startswith("aten:"):
            outputs = _on_meta(target.removeprefix("aten:"), inputs.bound, arguments)
            keep_strides = self.overload.alias is not None
            return tuple(
                Promise(_name(output.dtype), tuple(output.shape), tuple(output.stride()) if keep_strides else None)
                for output in outputs
            )
        expected = self.reference.expected(arguments, self.written)
        dtype = str(inputs.bound.case.dtype)
        return tuple(Promise(dtype, tuple(item.value.shape), None) for item in expected.values())

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
        reply = side.handle.request(message, timeout_s, _what(case))
        verdict = self._claims(call, reply)
        if verdict is not PASSED:
            return verdict
        snapshot = self.snapshot(side, call)
        verdict = self.judge(call, snapshot)
        if verdict is PASSED and self.overload.alias is not None:
            return self._prove_alias(side, case, call, generator)
        return verdict

    def snapshot(self, side: Side, call: PlacedCall) -> torch.Tensor:
        """A private copy of everything the call could have touched."""
        assert side.arena is not None
        start = call.inputs.start
        return side.arena.bytes_at(start, call.end - start).clone()

    def judge(self, call: PlacedCall, snapshot: torch.Tensor) -> Verdict:
        """From a snapshot alone: nothing changed that may not, and every output right."""
        outputs: dict[str, torch.Tensor] = {}
        variables = call.inputs.bound.case.variables
        for name, chunk in call.inputs.chunks.items():
            begin = chunk.offset - call.inputs.start
            after = snapshot[begin : begin + chunk.image.numel()]
            if (change := forbidden_change(name, chunk, after, variables)) is not None:
                return Verdict(Outcome.INPUT_CHANGED, change)
            if name in self.written:
                outputs[name] = chunk.view(after)
        for name, array in call.inputs.pointers.items():
            begin = array.offset - call.inputs.start
            if not array.is_intact(snapshot[begin : begin + array.nbytes], self.bases):
                return Verdict(Outcome.INPUT_CHANGED, f"changed the array of pointers '{name}', or wrote beside it")
        position = call.out_offset - call.inputs.start
        for index, promise in enumerate(call.promises):
            name = "return" if len(call.promises) == 1 else f"return[{index}]"
            nbytes = torch.Size(promise.shape).numel() * itemsize(promise.dtype)
            flat = snapshot[position : position + nbytes].clone()
            outputs[name] = flat.view(getattr(torch, promise.dtype)).reshape(promise.shape)
            position += round_up(nbytes, ALIGNMENT_BYTES)
        if variables.get("unjudged"):
            return PASSED
        present = tuple(name for name in self.written if name in outputs)
        expected = dict(call.known) or self.reference.expected(call.inputs.arguments(), present)
        if call.remembers:
            call.known.update(expected)
        for name in expected:
            if (live := self.live(call, name)) is not None:
                outputs[name] = torch.where(live, outputs[name], torch.zeros_like(outputs[name]))
                expected[name] = expected[name].masked(live)
        if self.canonical is not None:
            outputs, expected = in_one_form(self.canonical, outputs, expected, call.inputs.arguments())
        for name, wanted in expected.items():
            got = outputs.get(name)
            if got is None or got.shape != wanted.value.shape:
                return Verdict(Outcome.WRONG_VALUE, f"{name}: no right answer has this canonical form")
            mismatch = compare(name, got, wanted, self.limits(call.inputs.bound.case))
            if mismatch is not None:
                return Verdict(Outcome.WRONG_VALUE, _mismatch_words(mismatch), mismatch)
        return PASSED

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
        if self.written:
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
        if promise.strides is not None and claim.get("strides") != list(promise.strides):
            right = list(promise.strides)
            return Verdict(Outcome.WRONG_SHAPE, f"returned strides {claim.get('strides')}, {right} are right")
        if shares and self.overload.alias is None:
            return Verdict(Outcome.REJECTED, "returned a tensor that shares storage with an input")
        return PASSED

    def _prove_alias(self, side: Side, case: Case, first: PlacedCall, generator: torch.Generator) -> Verdict:
        """Rewrite the base under the returned view: a view shows the new values, a copy the old ones."""
        second = self.place(case, generator)
        assert side.arena is not None
        for chunk in second.inputs.chunks.values():
            side.arena.bytes_at(chunk.offset, chunk.image.numel()).copy_(chunk.image)
        side.arena.bytes_at(first.out_offset, first.out_bytes).fill_(0xFF)
        self._synchronize()
        side.handle.request({"op": "copy_out"}, 30.0, _what(case))
        verdict = self.judge(second, self.snapshot(side, second))
        if verdict.outcome is Outcome.WRONG_VALUE:
            words = f"not a view: after its base '{self.overload.alias}' was rewritten it still shows the old values"
            return Verdict(Outcome.WRONG_VALUE, words, verdict.mismatch)
        return verdict

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
        written = [name for name in self.written if name in call.inputs.chunks]
        return {"_views": views, "_written": written, "_returns": returns, "_alias": self.overload.alias is not None}

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


def warm_up() -> None:
    """Pay once for what torch loads when it first runs an operator without data."""
    torch.ops.aten.add.Tensor(*(torch.empty(1, device="meta") for _ in range(2)))


def _on_meta(overload: str, bound: BoundCase, arguments: dict[str, Any]) -> tuple[torch.Tensor, ...]:
    """Run ATen's operator on tensors without data: its rules for dtype, shape and strides, not its values."""
    name, _, variant = overload.partition(".")
    function: Callable[..., Any] = getattr(getattr(torch.ops.aten, name), variant or "default")
    positional, keyword = [], {}
    for argument in bound.arguments:
        value = arguments[argument.name]
        if isinstance(value, torch.Tensor):
            value = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        elif argument.type.startswith("dtype") and value is not None:
            value = getattr(torch, value)
        if argument.keyword_only:
            keyword[argument.name] = value
        else:
            positional.append(value)
    outputs = function(*positional, **keyword)
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _mismatch_words(mismatch: Mismatch) -> str:
    where = f"{mismatch.output}{list(mismatch.index)}"
    share = f"{mismatch.wrong_share:.1%} of {list(mismatch.shape)} {mismatch.dtype} wrong"
    return f"{where}: got {mismatch.got}, wanted {mismatch.wanted}, limit {mismatch.limit}; {share}"


def _what(case: Case) -> str:
    return f"case {case.id}"


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
