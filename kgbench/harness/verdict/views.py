"""Views, read by the referee alone: at the place and with the strides that a worker claims, in the referee's memory.

The answer of a view is its start and its strides, which only the worker's process can tell. The referee reads the
values there, rewrites the base with new secret values, and reads again. A claim that is correct both times is a correct
answer, however the process found it; no values come from the worker.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from kgbench.core.details.outputs import Alias, Aliasing
from kgbench.core.details.values import Mismatch
from kgbench.core.outcomes import Outcome
from kgbench.core.verdicts import Verdict
from kgbench.harness.verdict.inputs import GUARD_BYTES, itemsize
from kgbench.harness.verdict.output_specs import OutputSpec
from kgbench.harness.verdict.placed_call import PlacedCall, synchronize
from kgbench.harness.wire.buffers import ALIGNMENT_BYTES, LAZY_BITS, round_up
from kgbench.harness.workers.started import WorkerSide

Judge = Callable[[PlacedCall, torch.Tensor], Verdict]
"""Verdict on a call from a snapshot of its memory."""


def correct_place(call: PlacedCall, spec: OutputSpec) -> range:
    """Bytes of the buffer at which a view may begin: one where its offset is promised, else its base's storage."""
    chunk = call.inputs.chunks[spec.base]
    begin = chunk.offset + GUARD_BYTES
    if spec.offset is None:
        return range(begin, begin + chunk.storage_bytes)
    begin += spec.offset * itemsize(spec.dtype)
    return range(begin, begin + 1)


def show_views(call: PlacedCall, claims: list[Any], snapshot: torch.Tensor) -> None:
    """Enter what the claimed views show where a copied output lies.

    Args:
        claims: the worker's, as the contract found them right.
        snapshot: uint8, the call's memory from its first input on; changed in place.
    """
    position = call.out_offset - call.inputs.start
    for claim, spec in zip(claims, call.specs, strict=True):
        if spec.shares:
            dtype, size = getattr(torch, spec.dtype), itemsize(spec.dtype)
            start = (claim["at"] - call.inputs.start) // size
            # The chunks of a call begin at multiples of every element's size.
            whole = snapshot[: snapshot.numel() // size * size].view(dtype)
            view = whole.as_strided(spec.shape, claim["strides"], whole.storage_offset() + start)
            lazy = LAZY_BITS["conj" if spec.lazy[0] else "neg" if spec.lazy[1] else ""]
            values = torch.empty(spec.shape, dtype=dtype, device=snapshot.device).copy_(lazy(view))
            snapshot[position : position + spec.nbytes] = values.reshape(-1).view(torch.uint8)
        position += round_up(spec.nbytes, ALIGNMENT_BYTES)


def prove_views(side: WorkerSide, second: PlacedCall, claims: list[Any], judge: Judge) -> Verdict:
    """Rewrite the base with the inputs of a ``second`` call, and judge what the claimed views show then."""
    assert side.buffer is not None
    for chunk in second.inputs.chunks.values():
        side.buffer.bytes_at(chunk.offset, chunk.image.numel()).copy_(chunk.image)
    snapshot = second.snapshot(side)
    show_views(second, claims, snapshot)
    synchronize(snapshot.device)
    verdict = judge(second, snapshot)
    if verdict.outcome is Outcome.WRONG_VALUE:
        wrong = verdict.detail if isinstance(verdict.detail, Mismatch) else None
        name = "return" if wrong is None else wrong.output
        return Verdict(Outcome.WRONG_VALUE, Alias(name, Aliasing.SHOWS_OTHER_VALUES, wrong))
    return verdict
