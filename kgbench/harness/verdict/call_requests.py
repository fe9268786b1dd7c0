"""Builds the requests for a worker to make calls."""

from __future__ import annotations

from typing import Any

from kgbench.harness.verdict.contract import OutputContract
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.wire.buffers import encode_tensor
from kgbench.harness.wire.requests import CallOnce, Prepare
from kgbench.problem.cases import BoundCase
from kgbench.problem.model import Access, Overload


class CallRequests:
    """Requests for calls of one overload."""

    def __init__(self, overload: Overload, contract: OutputContract) -> None:
        self.overload = overload
        self.contract = contract

    def call(self, call: PlacedCall, trusted_reference: bool = False) -> CallOnce:
        """One call. ``trusted_reference``: it runs the reference, which needs to be told what to return."""
        args, kwargs = call.inputs.encoded(trusted_reference)
        if trusted_reference:
            kwargs |= self._reference_hints(call)
        else:
            self._send_host_values(call, args, kwargs)
        poison = [spec.nbytes for spec in call.specs if spec.nbytes]
        return CallOnce(self.overload.name, args, kwargs, [call.out_offset, call.out_bytes], poison, call.case.late)

    def prepare(self, call: PlacedCall, trusted_reference: bool, calls: int, stride: int) -> Prepare:
        """So many calls like this one, ``stride`` bytes apart."""
        return Prepare(self.call(call, trusted_reference), calls, stride)

    @staticmethod
    def _send_host_values(call: PlacedCall, args: list[Any], kwargs: dict[str, Any]) -> None:
        """Send values of tensors that lie in host memory with the call, since the buffer lies on the GPU."""
        for position, argument in enumerate(call.inputs.bound.arguments):
            chunk = call.inputs.chunks.get(argument.name)
            if chunk is None or not chunk.is_on_host:
                continue
            values = encode_tensor(chunk.view(chunk.image))
            if argument.keyword_only:
                kwargs[argument.name] = values
            else:
                args[position] = values

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
        returns = [spec.dtype for spec in call.specs]
        return {
            "_views": views,
            "_written": list(written_names(call.inputs.bound)),
            "_returns": returns,
            "_strides": [None if spec.strides is None else list(spec.strides) for spec in call.specs],
            "_alias": any(spec.shares for spec in call.specs),
            "_plain": self.contract.plain,
            "_returned_argument": self.overload.returned_argument,
        }


def written_names(bound: BoundCase) -> tuple[str, ...]:
    """Names of the tensors that a call writes."""
    return tuple(spec.name for spec in bound.specs if spec.access != Access.READ)
