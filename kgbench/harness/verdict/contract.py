"""What a call must return and may change, apart from values: types, shapes, storage, and every byte not its own."""

from __future__ import annotations

from typing import Any

import torch

from kgbench.core.outcomes import Outcome
from kgbench.core.text import told
from kgbench.harness.verdict.inputs import GUARD_BYTES, Chunk, itemsize, writable
from kgbench.harness.verdict.output_specs import Promise
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.verdict.reference import ReferenceFunction
from kgbench.harness.verdict.verdicts import PASSED, Verdict
from kgbench.harness.verdict.views import right_place
from kgbench.harness.wire.protocol import decode_scalar
from kgbench.problem.model import Access, Overload


class OutputContract:
    """What one overload's entry must return, beside the values of tensors."""

    def __init__(self, overload: Overload, device: torch.device, reference: ReferenceFunction) -> None:
        self.overload = overload
        self.device = device
        self.reference = reference
        self.plain = overload.signature.returns == "Scalar"
        """The entry returns a Python value."""
        self.returns_tensors = overload.signature.returns not in ("None", "Scalar") and not overload.returned_argument

    def check(self, call: PlacedCall, reply: dict[str, Any]) -> Verdict:
        """Whether the worker's reply claims what the entry must return, and nothing else."""
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
            if verdict is PASSED:
                verdict = _is_view(claim, promise, call) if promise.shares else _is_new(claim, call)
            if verdict is not PASSED:
                return verdict
        return PASSED

    def _claim(self, claim: Any, promise: Promise) -> Verdict:
        """What the worker says about one output, which may be anything: only the promised words pass."""
        if not isinstance(claim, dict):
            return Verdict(Outcome.REJECTED, "malformed reply")
        kind, shares = claim.get("type"), claim.get("shares")
        if kind != "Tensor":
            return Verdict(Outcome.REJECTED, f"returned {told(kind)}, a plain torch.Tensor is promised")
        if claim.get("device") != self.device.type:
            words = f"returned a tensor on {told(claim.get('device'))}, inputs are on {self.device.type}"
            return Verdict(Outcome.REJECTED, words)
        if claim.get("requires_grad") is not False:
            return Verdict(Outcome.REJECTED, "returned a tensor that requires grad")
        if claim.get("dtype") != promise.dtype:
            return Verdict(Outcome.WRONG_DTYPE, f"returned {told(claim.get('dtype'))}, {promise.dtype} is right")
        if claim.get("shape") != list(promise.shape):
            words = f"returned shape {told(claim.get('shape'))}, {list(promise.shape)} is right"
            return Verdict(Outcome.WRONG_SHAPE, words)
        if not promise.has_strides(claim.get("strides")):
            right = list(promise.strides or ())
            return Verdict(Outcome.WRONG_SHAPE, f"returned strides {told(claim.get('strides'))}, {right} are right")
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
            words = f"returned {told(claim.get('type', f'{len(claims)} values'))}, {type(right).__name__} is right"
            return Verdict(Outcome.WRONG_DTYPE, words)
        try:
            got = decode_scalar(claim.get("value"))
        except (TypeError, ValueError):
            return Verdict(Outcome.REJECTED, "malformed reply")
        # As text NaN equals NaN, and -0.0 is not 0.0.
        if type(got) is type(right) and repr(got) == repr(right):
            return PASSED
        return Verdict(Outcome.WRONG_VALUE, f"returned {told(repr(got))}, {right!r} is right")

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


def _is_view(claim: dict[str, Any], promise: Promise, call: PlacedCall) -> Verdict:
    """Whether an output lies where it must, by the worker's word; what stands there is read without it."""
    at, right, size = claim.get("at"), right_place(call, promise), itemsize(promise.dtype)
    chunk = call.inputs.chunks[promise.base]
    first = chunk.offset + GUARD_BYTES
    if type(at) is not int or not 0 <= at - first < chunk.storage_bytes:
        return Verdict(Outcome.WRONG_VALUE, f"not a view: it lies in other memory than '{promise.base}'")
    if at not in right or (at - first) % size:
        words = f"returned storage offset {(at - first) / size:g}, {promise.offset} is right"
        return Verdict(Outcome.WRONG_SHAPE, words)
    strides = claim["strides"]
    if any(type(step) is not int or not 0 <= step < 1 << 40 for step in strides):
        return Verdict(Outcome.REJECTED, "malformed reply")
    return PASSED


def _is_new(claim: dict[str, Any], call: PlacedCall) -> Verdict:
    """Whether an output lies outside of the call's memory, by the worker's word."""
    at = claim.get("at")
    if type(at) is int and 0 <= at - call.inputs.start < call.end - call.inputs.start:
        return Verdict(Outcome.REJECTED, "returned a tensor that lies in the memory of an input")
    return PASSED


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
    if chunk.spec.access == Access.READ:
        return f"changed input '{name}' at storage element {first} ({share})"
    return f"wrote outside the region of '{name}' that it may write, at storage element {first} ({share})"
