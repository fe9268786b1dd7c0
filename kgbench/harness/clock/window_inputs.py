"""The inputs of a whole window at once: one row of bytes per call, drawn together and handed out in one copy.

All calls of a case have the same layout, so drawing them one by one would only cost time in which others stand still.
Referee side only.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import torch

from kgbench.harness.machine import trace
from kgbench.harness.verdict.inputs import (
    GUARD_BYTES,
    Chunk,
    PointerArray,
    draw_into,
    drawn_shape,
    is_drawn,
    itemsize,
    poisoned,
)
from kgbench.harness.verdict.judge import OverloadJudge
from kgbench.harness.verdict.placed_call import PlacedCall
from kgbench.harness.verdict.secret_draws import renewed
from kgbench.harness.workers.started import WorkerSide
from kgbench.problem.cases import Case
from kgbench.problem.model import Access, Overload

TOGETHER_BYTES: Final = 256 << 20
"""Bytes drawn at once at most: intermediate values take several times as much."""


class WindowLayout:
    """What the calls of a case have in common. ``first`` is one of them, at the buffer's start."""

    def __init__(self, judge: OverloadJudge, first: PlacedCall) -> None:
        self.judge = judge
        self.overload: Overload = judge.overload
        self.first = first
        self.stride = first.end
        """Bytes from one call to the next: a multiple of the buffer's alignment."""
        self.template = self._template()

    @classmethod
    def of(cls, judge: OverloadJudge, case: Case, generator: torch.Generator) -> WindowLayout:
        """The layout of a case's calls."""
        return cls(judge, judge.place(case, generator))

    @trace.span("draw")
    def draw(self, calls: int, generator: torch.Generator) -> WindowInputs:
        """Fresh values for so many calls."""
        rows = self.template.expand(calls, self.stride).clone()
        renewed(generator)
        variables = self.first.inputs.bound.case.variables
        for chunk in self.first.inputs.chunks.values():
            if not is_drawn(chunk.spec):
                continue
            together = max(1, TOGETHER_BYTES // max(chunk.image.numel(), 1))
            for begin in range(0, calls, together):
                views = self._views(chunk, rows[begin : begin + together])
                draw_into(views, chunk.spec, variables, generator)
        inputs = WindowInputs(self, rows)
        if self.judge.prepare is not None:
            for i in range(calls):
                self.judge.prepare(inputs.call(i).inputs.arguments(), variables, generator)
        for chunk in self.first.inputs.chunks.values():
            if chunk.is_on_host:
                # Its values travelled when the calls were bound, before any window's were drawn.
                rows[:, chunk.offset : chunk.offset + chunk.image.numel()] = chunk.image
        return inputs

    def _template(self) -> torch.Tensor:
        inputs, device = self.first.inputs, self.judge.device
        row = torch.zeros(self.stride, dtype=torch.uint8, device=device)
        for chunk in inputs.chunks.values():
            row[chunk.offset : chunk.offset + chunk.image.numel()] = poisoned(chunk.spec, device)
        for array in inputs.pointers.values():
            row[array.offset : array.offset + array.nbytes] = array.image(0)
        row[self.first.out_offset :] = 0xFF
        return row

    def _views(self, chunk: Chunk, rows: torch.Tensor) -> torch.Tensor:
        """One argument of all these calls. ``rows``: uint8 (calls, stride)."""
        spec, size = chunk.spec, itemsize(chunk.spec.dtype)
        storage = rows.view(getattr(torch, spec.dtype))
        start = storage.storage_offset() + (chunk.offset + GUARD_BYTES) // size + spec.offset
        return storage.as_strided((len(rows), *drawn_shape(spec)), (self.stride // size, *spec.strides), start)


class WindowInputs:
    """Inputs of the calls of one window. The candidate works on a copy."""

    def __init__(self, layout: WindowLayout, rows: torch.Tensor) -> None:
        self.layout = layout
        self.rows = rows
        """uint8 (calls, stride), on the referee's device."""

    @trace.span("fill")
    def fill(self, side: WorkerSide) -> None:
        """Copy all calls into a side's buffer. Raises WorkerFailed."""
        calls, stride = self.rows.shape
        buffer = side.ensure_buffer(calls * stride).bytes_at(0, calls * stride)
        buffer.copy_(self.rows.view(-1))
        self.layout.judge.bases.add(side.base)
        moved = torch.arange(calls, device=self.rows.device)[:, None] * stride
        for array in self.layout.first.inputs.pointers.values():
            begin = array.offset + GUARD_BYTES
            addresses = (array.steps + side.base)[None, :] + moved
            end = begin + array.nbytes - 2 * GUARD_BYTES
            buffer.view(calls, stride)[:, begin:end] = addresses.view(torch.uint8)

    def overwrite(self, side: WorkerSide) -> None:
        """Put these values in the place of others that a side's calls may read, and nowhere else."""
        calls, stride = self.rows.shape
        buffer = side.ensure_buffer(calls * stride).bytes_at(0, calls * stride).view(calls, stride)
        for chunk in self.layout.first.inputs.chunks.values():
            if chunk.spec.access == Access.READ:
                place = slice(chunk.offset, chunk.offset + chunk.image.numel())
                buffer[:, place] = self.rows[:, place]

    def call(self, i: int) -> PlacedCall:
        """Call number ``i`` as a call by itself; its images are views of the rows."""
        first, begin = self.layout.first, i * self.layout.stride
        chunks = {
            name: replace(chunk, offset=chunk.offset + begin, image=self.rows[i, chunk.offset :][: chunk.image.numel()])
            for name, chunk in first.inputs.chunks.items()
        }
        pointers = {
            name: PointerArray(array.offset + begin, array.steps + begin)
            for name, array in first.inputs.pointers.items()
        }
        inputs = replace(first.inputs, chunks=chunks, start=begin, pointers=pointers)
        return replace(first, inputs=inputs, out_offset=first.out_offset + begin, known={})

    def kept(self, i: int) -> PlacedCall:
        """The same with bytes of its own, so that the other rows can go."""
        call = self.call(i)
        chunks = {name: replace(chunk, image=chunk.image.clone()) for name, chunk in call.inputs.chunks.items()}
        return replace(call, inputs=replace(call.inputs, chunks=chunks))
