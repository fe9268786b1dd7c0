"""Draws the inputs of a case and lays them out in a buffer between guard bands. Referee side only.

Every tensor becomes a chunk ``guard | storage | guard``. Its image is what the referee holds back: after a call the
chunk must equal the image everywhere except in the elements that the candidate may write. What the case leaves
undefined (padding, the other triangle, outputs before they are written) is poison: NaN in floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import torch

from kgbench.baselines.registry import load_function
from kgbench.harness.machine.arguments import encoded_call
from kgbench.harness.verdict.draws import ONE_BY_ONE, draw
from kgbench.harness.verdict.narrow_dtypes import either
from kgbench.harness.verdict.reference import live_mask
from kgbench.harness.verdict.samples import Samples
from kgbench.harness.verdict.secret_draws import renewed
from kgbench.harness.wire.buffers import ALIGNMENT_BYTES, LAZY_BITS, TensorPlace, round_up
from kgbench.problem.cases import BoundCase, TensorSpec
from kgbench.problem.model import Access, Overload, PassedAs

GUARD_BYTES: Final = 4096
"""Bytes of each guard band, in front of a tensor's storage and after it."""
MOST_DRAWN: Final = 1 << 28
"""Elements of an argument that are drawn at once."""
_FLOAT_POISON: Final = {
    torch.float64: (torch.int64, 0xFFF5A5A5A5A5A5A5 - (1 << 64)),
    torch.float32: (torch.int32, 0xFFA5A5A5 - (1 << 32)),
    torch.bfloat16: (torch.int16, 0xFFA5 - (1 << 16)),
    torch.float16: (torch.int16, 0xFDA5 - (1 << 16)),
}
"""Poison of floating-point elements, as bits of a signalling NaN. Arithmetic makes it a quiet NaN, so that a kernel
is seen that only scales what it may not touch.
"""
_SMALL_FLOAT_POISON: Final = 0xFF
"""Poison byte of floating-point types of 8 bits: a NaN in each."""
_OTHER_POISON: Final = 0xA5
"""Poison byte of whole numbers, truth values and pointers."""


@dataclass(frozen=True)
class Chunk:
    """One tensor argument of one call: its place, its bytes, and which of them may change."""

    spec: TensorSpec
    offset: int
    """Byte offset of the leading guard in the buffer."""
    image: torch.Tensor
    """uint8 (guard + storage + guard,), on the referee's device: the bytes as handed out."""

    @property
    def nbytes(self) -> int:
        return self.image.numel()

    @property
    def storage_bytes(self) -> int:
        return self.nbytes - 2 * GUARD_BYTES

    @property
    def is_on_host(self) -> bool:
        """True where the candidate runs on a GPU and gets this tensor in host memory."""
        return self.spec.host and self.image.device.type != "cpu"

    @property
    def place(self) -> TensorPlace:
        """The tensor's place as the candidate gets it."""
        spec, begin = self.spec, self.offset + GUARD_BYTES
        if spec.passed != PassedAs.VIEW:
            # A pointer as cuBLAS takes it: to the first element, wherever that lies.
            skipped = spec.offset * itemsize(spec.dtype)
            size = spec.extent - spec.offset
            return TensorPlace(begin + skipped, self.storage_bytes - skipped, spec.dtype, (size,), (1,), 0)
        return TensorPlace(begin, self.storage_bytes, spec.dtype, spec.shape, spec.strides, spec.offset)

    def alone(self) -> torch.Tensor:
        """The logical view of a copy of the bytes, in a storage without guards: what strides and offsets count in."""
        stored = (
            self.image[GUARD_BYTES : self.image.numel() - GUARD_BYTES].clone().view(getattr(torch, self.spec.dtype))
        )
        return LAZY_BITS[self.spec.lazy](stored.as_strided(self.spec.shape, self.spec.strides, self.spec.offset))

    def view(self, chunk: torch.Tensor) -> torch.Tensor:
        """The logical view within the bytes of this chunk (the image, or a snapshot); a copy where it is shuffled."""
        view = LAZY_BITS[self.spec.lazy](_logical(chunk, self.spec, self.spec.shape))
        return view[list(self.spec.slots)] if self.spec.slots else view


@dataclass(frozen=True)
class PointerArray:
    """The addresses of one argument's matrices: ``guard | int64 addresses | guard`` behind the matrices.

    Only a worker knows where it has the buffer, so the addresses are made from its base when they are handed out.
    """

    offset: int
    """Byte offset of the leading guard in the buffer."""
    steps: torch.Tensor
    """int64 (count,): byte offsets into the buffer, on the referee's device."""

    @property
    def nbytes(self) -> int:
        return 2 * GUARD_BYTES + self.steps.numel() * self.steps.element_size()

    @property
    def place(self) -> TensorPlace:
        size = self.nbytes - 2 * GUARD_BYTES
        return TensorPlace(self.offset + GUARD_BYTES, size, "int64", (self.steps.numel(),), (1,), 0)

    def image(self, base: int) -> torch.Tensor:
        """uint8: the bytes as handed out to a worker that has the buffer at ``base``."""
        image = torch.full((self.nbytes,), _OTHER_POISON, dtype=torch.uint8, device=self.steps.device)
        image[GUARD_BYTES : self.nbytes - GUARD_BYTES] = (self.steps + base).view(torch.uint8)
        return image

    def has_changed(self, after: torch.Tensor, bases: set[int]) -> torch.Tensor:
        """bool, no dimensions, on the array's device: the opposite of ``is_intact``. Waits for no device."""
        return torch.stack([(after != self.image(base)).any() for base in bases]).all()

    def is_intact(self, after: torch.Tensor, bases: set[int]) -> bool:
        """Whether the bytes are still those handed out to one of the workers."""
        return any(torch.equal(after, self.image(base)) for base in bases)


@dataclass(frozen=True)
class CallInputs:
    """All arguments of one call, drawn and placed."""

    bound: BoundCase
    chunks: dict[str, Chunk]
    nbytes: int
    """Bytes from the first guard to the end of the last, rounded up."""
    start: int
    pointers: dict[str, PointerArray] = field(default_factory=dict)
    """Arrays of pointers, by the names of the arguments that are passed so; their matrices are in ``chunks``."""
    samples: Samples | None = None
    """The rows that are judged; None where all are."""

    def images(self, base: int) -> Iterator[tuple[int, torch.Tensor]]:
        """Every run of bytes that a worker with the buffer at ``base`` is given, with its byte offset in the buffer."""
        for chunk in self.chunks.values():
            yield chunk.offset, chunk.image
        for array in self.pointers.values():
            yield array.offset, array.image(base)

    @property
    def device_type(self) -> str:
        """The kind of device that the tensors are on; ``cpu`` where there are none."""
        return next((chunk.image.device.type for chunk in self.chunks.values()), "cpu")

    def arguments(self) -> dict[str, Any]:
        """Arguments by name as the reference takes them: logical views of the images, and scalars."""
        return self._by_name(lambda chunk: chunk.view(chunk.image))

    def judged_arguments(self) -> dict[str, Any]:
        """The same, of the rows that are judged."""
        return {name: self.judged(value) for name, value in self.arguments().items()}

    def judged(self, value: Any) -> Any:
        """The rows of an argument or output that are judged."""
        return value if self.samples is None else self.samples.of(value)

    def stored_arguments(self) -> dict[str, Any]:
        """The same, each tensor in a storage of its own that is laid out as the candidate's."""
        return self._by_name(Chunk.alone)

    def _by_name(self, tensor: Callable[[Chunk], torch.Tensor]) -> dict[str, Any]:
        return {argument.name: self._logical(argument.value, tensor) for argument in self.bound.arguments}

    def _logical(self, value: Any, tensor: Callable[[Chunk], torch.Tensor]) -> Any:
        # An inner function that calls itself would be a reference cycle, and hold the call's memory with it.
        if isinstance(value, TensorSpec):
            return tensor(self.chunks[value.name])
        return [self._logical(each, tensor) for each in value] if isinstance(value, tuple) else value

    def encoded(self, as_storage: bool = False) -> tuple[list[Any], dict[str, Any]]:
        """Positional and keyword arguments as they travel to a worker; ``as_storage``: with the matrices in place of
        pointers to them."""
        return encoded_call(self.bound, lambda spec: self._place(spec, as_storage))

    def _place(self, spec: TensorSpec, as_storage: bool) -> dict[str, Any]:
        """A tensor as ``candidate.calls.decode`` takes it."""
        pointed = None if as_storage else self.pointers.get(spec.name)
        place = (self.chunks[spec.name] if pointed is None else pointed).place.to_json()
        return {**place, "lazy": spec.lazy} if spec.lazy else place


def make_inputs(
    overload: Overload, bound: BoundCase, generator: torch.Generator, prepare: Callable[..., Any] | None = None
) -> CallInputs:
    """Fresh inputs for one call, at the buffer's start. ``prepare`` stands in for the function that the overload names.

    Raises ValueError for an unknown draw.
    """
    device = renewed(generator).device
    chunks: dict[str, Chunk] = {}
    pointers: dict[str, PointerArray] = {}
    offset = 0
    for spec in bound.specs:
        chunk = Chunk(spec, offset, _image(spec, bound.case.variables, generator, device))
        chunks[spec.name] = chunk
        offset = round_up(offset + chunk.image.numel(), ALIGNMENT_BYTES)
        if spec.passed == PassedAs.POINTERS:
            pointers[spec.name] = PointerArray(offset, _steps(chunk, device))
            offset = round_up(offset + pointers[spec.name].nbytes, ALIGNMENT_BYTES)
    inputs = CallInputs(bound, chunks, offset, 0, pointers)
    if prepare is None and overload.prepare is not None:
        prepare = load_function(overload.prepare)
    if prepare is not None:
        prepare(inputs.arguments(), bound.case.variables, generator)
    return replace(inputs, samples=Samples.drawn(bound, generator))


def writable(chunk: Chunk, variables: dict[str, Any]) -> torch.Tensor:
    """bool (storage elements,): the elements of this chunk's storage that a call may write."""
    spec, device = chunk.spec, chunk.image.device
    mask = torch.zeros(spec.extent, dtype=torch.bool, device=device)
    if spec.access != Access.READ:
        view = mask.as_strided(spec.shape, spec.strides, spec.offset)
        live = torch.ones_like(view) if spec.live is None else live_mask(spec.live, view, variables)
        _store(view[None], live[None], spec)
    return mask


def itemsize(dtype: str) -> int:
    return int(getattr(torch, dtype).itemsize)


def poisoned(spec: TensorSpec, device: torch.device) -> torch.Tensor:
    """uint8 (guard + storage + guard,): the bytes of an argument of which nothing is defined yet."""
    dtype = getattr(torch, spec.dtype)
    nbytes = 2 * GUARD_BYTES + spec.extent * itemsize(spec.dtype)
    part = dtype.to_real() if dtype.is_complex else dtype
    if part in _FLOAT_POISON:
        bits, value = _FLOAT_POISON[part]
        return torch.full((nbytes // bits.itemsize,), value, dtype=bits, device=device).view(torch.uint8)
    value = _SMALL_FLOAT_POISON if dtype.is_floating_point else _OTHER_POISON
    return torch.full((nbytes,), value, dtype=torch.uint8, device=device)


def _image(
    spec: TensorSpec, variables: dict[str, Any], generator: torch.Generator, device: torch.device
) -> torch.Tensor:
    image = poisoned(spec, device)
    if is_drawn(spec):
        draw_into(_logical(image, spec, drawn_shape(spec))[None], spec, variables, generator)
    return image


def is_drawn(spec: TensorSpec) -> bool:
    """Whether the argument has values before the call, and not poison alone."""
    return spec.access != Access.WRITE and spec.extent > 0


def drawn_shape(spec: TensorSpec) -> tuple[int, ...]:
    """The argument's shape, with one value in each expanded dimension."""
    return tuple(1 if stride == 0 else size for size, stride in zip(spec.shape, spec.strides, strict=True))


def draw_into(views: torch.Tensor, spec: TensorSpec, variables: dict[str, Any], generator: torch.Generator) -> None:
    """Draw one argument of several calls. ``views``: (calls, *drawn_shape(spec)), within their poisoned storage."""
    calls, *shape = views.shape
    name, arguments = spec.draw.name, spec.draw.arguments
    if views.numel() > MOST_DRAWN and name not in ONE_BY_ONE and not (spec.live or spec.slots):
        # Values are drawn in wider types.
        longest = max(range(views.dim()), key=lambda at: views.shape[at])
        rows = max(1, MOST_DRAWN * views.shape[longest] // views.numel())
        for part in torch.split(views, rows, longest):
            part.copy_(draw(name, arguments, tuple(part.shape), views.dtype, generator))
        return
    if name in ONE_BY_ONE:
        values = torch.stack([draw(name, arguments, tuple(shape), views.dtype, generator) for _ in range(calls)])
    else:
        values = draw(name, arguments, tuple(views.shape), views.dtype, generator)
    if spec.live is not None:
        values = either(live_mask(spec.live, views[0], variables), values, views)
    _store(views, values, spec)


def _store(views: torch.Tensor, values: torch.Tensor, spec: TensorSpec) -> None:
    """Write values by logical index into views of storage, one for each call in front."""
    if spec.slots:
        views[:, list(spec.slots)] = values
    else:
        views.copy_(values)


def _steps(chunk: Chunk, device: torch.device) -> torch.Tensor:
    """Byte offset in the buffer of each matrix of a batch."""
    spec = chunk.spec
    slots = torch.tensor(spec.slots or range(spec.shape[0]), dtype=torch.int64, device=device)
    return chunk.place.storage_offset_bytes + slots * (spec.strides[0] * itemsize(spec.dtype))


def _logical(chunk: torch.Tensor, spec: TensorSpec, shape: tuple[int, ...]) -> torch.Tensor:
    storage = chunk[GUARD_BYTES : chunk.numel() - GUARD_BYTES].view(getattr(torch, spec.dtype))
    return storage.as_strided(shape, spec.strides, storage.storage_offset() + spec.offset)
