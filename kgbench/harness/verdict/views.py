"""Proves that what an entry returned is a view of its input, in both directions."""

from __future__ import annotations

from collections.abc import Callable

import torch

from kgbench.core.outcomes import Outcome
from kgbench.harness.verdict.inputs import GUARD_BYTES, LAZY_BITS
from kgbench.harness.verdict.placed_call import PlacedCall, synchronize
from kgbench.harness.verdict.verdicts import PASSED, Verdict
from kgbench.harness.wire.buffers import ALIGNMENT_BYTES, round_up
from kgbench.harness.workers.started import Side

Judge = Callable[[PlacedCall, torch.Tensor], Verdict]
"""Verdict on a call from a snapshot of its memory."""


def prove_view(side: Side, first: PlacedCall, second: PlacedCall, judge: Judge, generator: torch.Generator) -> Verdict:
    """Rewrite the base under the view that the ``first`` call returned with the inputs of the ``second``: a view shows
    the new values, a copy the old ones. Then have the worker write through the view. Raises WorkerFailed.
    """
    assert side.buffer is not None
    for chunk in second.inputs.chunks.values():
        side.buffer.bytes_at(chunk.offset, chunk.image.numel()).copy_(chunk.image)
    side.buffer.bytes_at(first.out_offset, first.out_bytes).fill_(0xFF)
    synchronize(generator.device)
    side.handle.request({"op": "copy_out"}, 30.0, first.label)
    verdict = judge(second, second.snapshot(side))
    if verdict.outcome is Outcome.WRONG_VALUE:
        words = "not a view: after its base was rewritten it still shows the old values"
        return Verdict(Outcome.WRONG_VALUE, words, verdict.mismatch)
    return verdict if verdict is not PASSED else _prove_writing(side, second, generator)


def _prove_writing(side: Side, call: PlacedCall, generator: torch.Generator) -> Verdict:
    """Have the worker write through the returned views: the base must hold what was written, and nothing else."""
    assert side.buffer is not None
    bases = {name: chunk.image.clone() for name, chunk in call.inputs.chunks.items()}
    position = call.out_offset
    for promise in call.promises:
        written = torch.randint(
            0, 2, (promise.nbytes,), generator=generator, device=generator.device, dtype=torch.uint8
        )
        side.buffer.bytes_at(position, promise.nbytes).copy_(written)
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
    synchronize(generator.device)
    side.handle.request({"op": "write_back"}, 30.0, call.label)
    for name, chunk in call.inputs.chunks.items():
        if not torch.equal(side.buffer.bytes_at(chunk.offset, chunk.image.numel()), bases[name]):
            return Verdict(Outcome.WRONG_VALUE, f"not a view: what is written through it does not show in '{name}'")
    return PASSED
