"""Collects the memory that a call could have touched, and what it returned."""

from __future__ import annotations

from typing import Any, Final

import torch

from kgbench.harness.verdict.inputs import Chunk
from kgbench.harness.verdict.placed_call import PlacedCall, synchronize
from kgbench.harness.verdict.views import show_views
from kgbench.harness.wire.requests import PlaceOutputs
from kgbench.harness.workers.started import WorkerSide
from kgbench.problem.model import Access

TAKEN: Final = 0x5A
"""Byte that takes the place of inputs once a call is done."""


class Collector:
    """Collects from the workers of one device, and trusts none of their copies."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def claims(self, reply: dict[str, Any]) -> list[Any]:
        """The worker's claims about its outputs, once the contract accepted them: where views are read."""
        return list(reply["outputs"])

    def collect(self, side: WorkerSide, call: PlacedCall, claims: list[Any], timeout_s: float) -> torch.Tensor:
        """A snapshot of a call that was made, with its outputs. Raises WorkerFailed.

        Returned tensors are copied after the inputs were overwritten: a candidate that has not finished by then, or
        returned memory of an input, gives a wrong copy. Views are read here, without the worker.
        """
        assert side.buffer is not None
        snapshot = call.snapshot(side)
        if any(spec.nbytes and not (spec.shares and claims) for spec in call.specs):
            self._place_without_inputs(side, call, snapshot, timeout_s)
        if claims and any(spec.shares for spec in call.specs):
            show_views(call, claims, snapshot)
        return snapshot

    def taken(self, call: PlacedCall) -> list[Chunk]:
        """The inputs that are overwritten while outputs are copied."""
        return [
            chunk for chunk in call.inputs.chunks.values() if chunk.spec.access == Access.READ and not chunk.is_on_host
        ]

    def _place_without_inputs(
        self, side: WorkerSide, call: PlacedCall, snapshot: torch.Tensor, timeout_s: float
    ) -> None:
        """Have the worker copy what it returned; ``snapshot`` gets it. Inputs lie in the buffer again afterwards."""
        assert side.buffer is not None
        taken = self.taken(call)
        for chunk in taken:
            side.buffer.bytes_at(chunk.offset, chunk.image.numel()).fill_(TAKEN)
        synchronize(self.device)
        side.handle.request(PlaceOutputs(), timeout_s, call.where)
        begin = call.out_offset - call.inputs.start
        snapshot[begin:] = side.buffer.bytes_at(call.out_offset, call.out_bytes)
        for chunk in taken:
            offset = chunk.offset - call.inputs.start
            side.buffer.bytes_at(chunk.offset, chunk.image.numel()).copy_(
                snapshot[offset : offset + chunk.image.numel()]
            )
