"""What a call must return and may change, apart from values: types, shapes, storage, and every byte not its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import torch

from kgbench.core.details.failures import Breach, RuleBroken
from kgbench.core.details.outputs import (
    Alias,
    Aliasing,
    Attribute,
    Dtype,
    Guard,
    InputChanged,
    Shape,
    StorageOffset,
    Strides,
    WrongAttribute,
)
from kgbench.core.details.values import Scalar
from kgbench.core.outcomes import Outcome
from kgbench.core.text import told
from kgbench.core.verdicts import PASSED, Verdict
from kgbench.harness.verdict.inputs import GUARD_BYTES, Chunk, itemsize, writable
from kgbench.harness.verdict.output_specs import OutputSpec
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.verdict.reference import ReferenceFunction
from kgbench.harness.verdict.views import correct_place
from kgbench.harness.wire.protocol import decode_scalar
from kgbench.problem.model import Access, Overload

MOST_DIMENSIONS: Final = 64
"""Dimensions of a claimed shape, or numbers of claimed strides, at most; PyTorch's own tensors have no more."""
MOST_SIZE: Final = 1 << 63
"""What is below it fits the numbers that PyTorch counts elements with."""
PIECE_BYTES: Final = 1 << 28
"""Bytes of an argument that are compared at once; a multiple of every element's size."""
MALFORMED: Final = Verdict(Outcome.REJECTED, RuleBroken(Breach.MALFORMED))


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
            return MALFORMED
        if self.plain:
            return self._plain_value(call, claims)
        if self.overload.returned_argument:
            return self._argument_itself(call, claims)
        if not self.returns_tensors:
            # The entry is `-> None`: what it returns is nobody's business.
            return PASSED
        if len(claims) != len(call.specs):
            count = WrongAttribute("return", Attribute.COUNT, str(len(claims)), str(len(call.specs)))
            return Verdict(Outcome.REJECTED, count)
        for claim, spec, output in zip(claims, call.specs, call.outputs, strict=True):
            verdict = self._claim(claim, spec, output) if isinstance(claim, dict) else MALFORMED
            if verdict is PASSED and spec.shares:
                verdict = _is_view(claim, spec, call, output)
            elif verdict is PASSED:
                verdict = _is_new(claim, call, output)
            if verdict is not PASSED:
                return verdict
        return PASSED

    def _claim(self, claim: dict[str, Any], spec: OutputSpec, output: str) -> Verdict:
        """Check one claimed output. The claim may be anything; only the expected values pass."""
        if wrong := self._wrong_attribute(claim, output):
            return Verdict(Outcome.REJECTED, wrong)
        if claim.get("dtype") != spec.dtype:
            return Verdict(Outcome.WRONG_DTYPE, Dtype(output, told(claim.get("dtype")), spec.dtype))
        if claim.get("shape") != list(spec.shape):
            return Verdict(Outcome.WRONG_SHAPE, Shape(output, _dimensions(claim.get("shape")), spec.shape))
        if not spec.has_strides(claim.get("strides")):
            strides = Strides(output, _dimensions(claim.get("strides")), spec.strides or ())
            return Verdict(Outcome.WRONG_SHAPE, strides)
        if claim.get("lazy") != list(spec.lazy):
            bits = WrongAttribute(output, Attribute.LAZY_BITS, told(claim.get("lazy")), str(list(spec.lazy)))
            return Verdict(Outcome.REJECTED, bits)
        if claim.get("shares") and not spec.shares:
            return Verdict(Outcome.REJECTED, Alias(output, Aliasing.SHARES_STORAGE))
        return PASSED

    def _wrong_attribute(self, claim: dict[str, Any], output: str) -> WrongAttribute | None:
        """The first of type, device and ``requires_grad`` that is not a plain tensor's on the inputs' device."""
        promised = (
            (Attribute.TYPE, "type", "Tensor", "a plain torch.Tensor"),
            (Attribute.DEVICE, "device", self.device.type, self.device.type),
            (Attribute.REQUIRES_GRAD, "requires_grad", False, "False"),
        )
        for attribute, key, right, words in promised:
            got = claim.get(key)
            if type(got) is not type(right) or got != right:
                return WrongAttribute(output, attribute, told(got), words)
        return None

    def _plain_value(self, call: PlacedCall, claims: list[Any]) -> Verdict:
        """A Python value: its type and itself, exactly."""
        right = self.reference.value(call.inputs.arguments())
        claim = claims[0] if len(claims) == 1 and isinstance(claims[0], dict) else {}
        if claim.get("type") != type(right).__name__:
            got_type = told(claim.get("type", f"{len(claims)} values"))
            wrong = WrongAttribute("return", Attribute.TYPE, got_type, type(right).__name__)
            return Verdict(Outcome.WRONG_DTYPE, wrong)
        try:
            got = decode_scalar(claim.get("value"))
        except (TypeError, ValueError, OverflowError):
            return MALFORMED
        # As text NaN equals NaN, and -0.0 is not 0.0.
        if type(got) is type(right) and repr(got) == repr(right):
            return PASSED
        return Verdict(Outcome.WRONG_VALUE, Scalar(told(repr(got)), repr(right)))

    def _argument_itself(self, call: PlacedCall, claims: list[Any]) -> Verdict:
        """The written argument must come back as it was passed."""
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
        return Verdict(Outcome.REJECTED, Alias(name, Aliasing.NOT_ITSELF))


def _is_view(claim: dict[str, Any], spec: OutputSpec, call: PlacedCall, output: str) -> Verdict:
    """Whether an output lies where it must, by the worker's claim; its values are read without the worker."""
    at, right, size = claim.get("at"), correct_place(call, spec), itemsize(spec.dtype)
    chunk = call.inputs.chunks[spec.base]
    first = chunk.offset + GUARD_BYTES
    if type(at) is not int or not 0 <= at - first < chunk.storage_bytes:
        return Verdict(Outcome.WRONG_VALUE, Alias(spec.base, Aliasing.LIES_ELSEWHERE))
    if at not in right or (at - first) % size:
        return Verdict(Outcome.WRONG_SHAPE, StorageOffset(output, (at - first) / size, spec.offset))
    strides = claim.get("strides")
    if not isinstance(strides, list) or len(strides) != len(spec.shape):
        return MALFORMED
    if any(type(step) is not int or not 0 <= step < 1 << 40 for step in strides):
        return MALFORMED
    return PASSED


def _is_new(claim: dict[str, Any], call: PlacedCall, output: str) -> Verdict:
    """Whether an output lies outside the call's memory, by the worker's claim."""
    at = claim.get("at")
    if type(at) is int and 0 <= at - call.inputs.start < call.end - call.inputs.start:
        return Verdict(Outcome.REJECTED, Alias(output, Aliasing.LIES_IN_INPUT))
    return PASSED


def _dimensions(claimed: Any) -> tuple[int, ...] | None:
    """A shape or strides as a worker names them; None where that is no list of whole numbers that a tensor can have."""
    if not isinstance(claimed, list) or len(claimed) > MOST_DIMENSIONS:
        return None
    if not all(type(each) is int and -MOST_SIZE <= each < MOST_SIZE for each in claimed):
        return None
    return tuple(claimed)


def forbidden_change(
    name: str, chunk: Chunk, after: torch.Tensor, variables: dict[str, Any]
) -> Guard | InputChanged | None:
    """The first byte that a call changed and may not, or None. ``after``: the chunk's bytes."""
    if not any(bool((one != other).any()) for one, other in _pieces(after, chunk.image)):
        return None
    end = chunk.image.numel() - GUARD_BYTES
    changed = after[:GUARD_BYTES] != chunk.image[:GUARD_BYTES], after[end:] != chunk.image[end:]
    if bool(changed[0].any()):
        return Guard(name, behind=False, distance=0)
    if bool(changed[1].any()):
        return Guard(name, behind=True, distance=int(changed[1].nonzero()[0]))
    first, count, begin = -1, 0, 0
    for wrong in _changed_elements(chunk, after, variables):
        if bool(wrong.any()):
            first = begin + int(wrong.nonzero()[0]) if first < 0 else first
            count += int(wrong.sum())
        begin += wrong.numel()
    if not count:
        return None
    return InputChanged(name, first, count, begin, writes_part=chunk.spec.access != Access.READ)


def has_changed(chunk: Chunk, after: torch.Tensor, variables: dict[str, Any]) -> torch.Tensor:
    """bool, no dimensions, on the chunk's device: whether ``forbidden_change`` finds something. Waits for no device."""
    if chunk.spec.access == Access.READ:
        return _any(one != other for one, other in _pieces(after, chunk.image))
    end = chunk.image.numel() - GUARD_BYTES
    guards = (after[at] != chunk.image[at] for at in (slice(GUARD_BYTES), slice(end, None)))
    return _any(guards) | _any(_changed_elements(chunk, after, variables))


def _changed_elements(chunk: Chunk, after: torch.Tensor, variables: dict[str, Any]) -> Iterator[torch.Tensor]:
    """bool, for each element of the storage, piece by piece: whether a call changed it and may not."""
    end, size, begin = chunk.image.numel() - GUARD_BYTES, itemsize(chunk.spec.dtype), 0
    may_change = None if chunk.spec.access == Access.READ else writable(chunk, variables)
    for one, other in _pieces(after[GUARD_BYTES:end], chunk.image[GUARD_BYTES:end]):
        wrong = (one != other).reshape(-1, size).any(dim=1)
        if may_change is not None:
            wrong &= ~may_change[begin : begin + wrong.numel()]
        begin += wrong.numel()
        yield wrong


def _any(flags: Iterable[torch.Tensor]) -> torch.Tensor:
    return torch.stack([each.any() for each in flags]).any()


def _pieces(after: torch.Tensor, before: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Bytes to compare, so many at once that what is made of them takes little memory."""
    return zip(torch.split(after, PIECE_BYTES), torch.split(before, PIECE_BYTES), strict=True)
