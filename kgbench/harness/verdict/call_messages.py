"""What a worker is told of one call: arguments, their places, what to fill memory with before."""

from __future__ import annotations

from typing import Any

from kgbench.harness.verdict.contract import OutputContract
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.wire.buffers import encode_tensor
from kgbench.harness.wire.protocol import Message
from kgbench.problem.cases import BoundCase
from kgbench.problem.model import Access, Overload


class CallMessages:
    """Describes calls of one overload to workers."""

    def __init__(self, overload: Overload, contract: OutputContract) -> None:
        self.overload = overload
        self.contract = contract

    def message(self, call: PlacedCall, trusted_reference: bool = False) -> Message:
        """The call's fields. ``trusted_reference``: it runs the reference, which needs to be told what to return."""
        message = call.inputs.message(self.overload.name, call.out_offset, call.out_bytes, trusted_reference)
        message["poison"] = [promise.nbytes for promise in call.promises if promise.nbytes]
        message["late"] = call.case.late
        if trusted_reference:
            message["kwargs"] |= self._reference_hints(call)
            return message
        for position, argument in enumerate(call.inputs.bound.arguments):
            chunk = call.inputs.chunks.get(argument.name)
            if chunk is not None and chunk.is_on_host:
                # No GPU's buffer can be seen from the host, so its values travel with the call.
                holder, key = (
                    (message["kwargs"], argument.name) if argument.keyword_only else (message["args"], position)
                )
                holder[key] = encode_tensor(chunk.view(chunk.image))
        return message

    def _reference_hints(self, call: PlacedCall) -> dict[str, Any]:
        views = {
            name: [
                list(chunk.spec.shape),
                list(chunk.spec.strides),
                0,
                None if chunk.spec.live is None else chunk.spec.live.text,
                {k: v for k, v in call.case.variables.items() if isinstance(v, (int, str, bool))},
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
            "_plain": self.contract.plain,
            "_returned_argument": self.overload.returned_argument,
        }


def written_names(bound: BoundCase) -> tuple[str, ...]:
    """Names of the tensors that a call writes."""
    return tuple(spec.name for spec in bound.specs if spec.access != Access.READ)
