"""Draws the inputs of a case and lays them out in an arena between guard bands. Referee side only.

Every tensor becomes a chunk ``guard | storage | guard``. Its image is what the referee holds back: after a call the
chunk must equal the image everywhere except in the elements that the candidate may write. What the case leaves
undefined (padding, the other triangle, outputs before they are written) is poison: NaN in floating point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from kgbench.baselines.registry import load_function
from kgbench.harness.verdict.narrow_dtypes import FP8, either, stored_as
from kgbench.harness.verdict.reference import live_mask
from kgbench.harness.wire.buffers import ALIGNMENT_BYTES, TensorPlace, round_up
from kgbench.harness.wire.protocol import encode_scalar
from kgbench.problem.cases import BoundCase, TensorSpec
from kgbench.problem.format import plain_type
from kgbench.problem.model import Overload

GUARD_BYTES: Final = 4096
TORCH_NAMES: Final = ("dtype", "layout", "memory_format")
"""Types whose values are names within torch."""
MADE_BY_WORKER: Final = ("device", "Generator")
"""Types whose values only the worker's process can make."""
_FLOAT_POISON: Final = {
    torch.float64: (torch.int64, 0xFFF5A5A5A5A5A5A5 - (1 << 64)),
    torch.float32: (torch.int32, 0xFFA5A5A5 - (1 << 32)),
    torch.bfloat16: (torch.int16, 0xFFA5 - (1 << 16)),
    torch.float16: (torch.int16, 0xFDA5 - (1 << 16)),
}
"""Signalling NaN, as bits: arithmetic quietens it, so that a kernel which only scales what it may not touch is seen."""
_SMALL_FLOAT_POISON: Final = 0xFF
"""NaN in the types of 8 bits."""
_OTHER_POISON: Final = 0xA5
LAZY_BITS: Final[dict[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "": lambda view: view,
    "conj": lambda view: view.conj(),
    "neg": torch._neg_view,
}
"""How a tensor is handed over, by ``TensorSpec.lazy``."""
ONE_BY_ONE: Final = ("arange", "distinct", "permutation")
"""Draws whose values depend on the shape as a whole."""


@dataclass(frozen=True)
class Chunk:
    """One tensor argument of one call: where it goes, what it holds and what may change in it."""

    spec: TensorSpec
    offset: int
    """Byte offset of the leading guard in the arena."""
    image: torch.Tensor
    """uint8 (guard + storage + guard,), on the referee's device: the bytes as handed out."""

    @property
    def storage_bytes(self) -> int:
        return self.image.numel() - 2 * GUARD_BYTES

    @property
    def is_on_host(self) -> bool:
        """The candidate runs on a GPU, and gets it in the memory of the host."""
        return self.spec.host and self.image.device.type != "cpu"

    @property
    def place(self) -> TensorPlace:
        """How the candidate sees it."""
        spec, begin = self.spec, self.offset + GUARD_BYTES
        if spec.passed != "view":
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

    Only a worker knows where it has the arena, so the addresses are made from its base when they are handed out.
    """

    offset: int
    """Byte offset of the leading guard in the arena."""
    steps: torch.Tensor
    """int64 (count,): byte offsets into the arena, on the referee's device."""

    @property
    def nbytes(self) -> int:
        return 2 * GUARD_BYTES + self.steps.numel() * self.steps.element_size()

    @property
    def place(self) -> TensorPlace:
        size = self.nbytes - 2 * GUARD_BYTES
        return TensorPlace(self.offset + GUARD_BYTES, size, "int64", (self.steps.numel(),), (1,), 0)

    def image(self, base: int) -> torch.Tensor:
        """uint8: the bytes as handed out to a worker that has the arena at ``base``."""
        image = torch.full((self.nbytes,), _OTHER_POISON, dtype=torch.uint8, device=self.steps.device)
        image[GUARD_BYTES : self.nbytes - GUARD_BYTES] = (self.steps + base).view(torch.uint8)
        return image

    def is_intact(self, after: torch.Tensor, bases: set[int]) -> bool:
        """Whether the bytes are still those handed out to one of the workers."""
        return any(torch.equal(after, self.image(base)) for base in bases)


@dataclass(frozen=True)
class CallInputs:
    """All arguments of one call, drawn and placed."""

    bound: BoundCase
    chunks: dict[str, Chunk]
    nbytes: int
    """From the first guard to the end of the last, rounded up."""
    start: int
    pointers: dict[str, PointerArray] = field(default_factory=dict)
    """Of arguments that are passed as arrays of pointers; the matrices themselves are chunks as any."""

    def images(self, base: int) -> Iterator[tuple[int, torch.Tensor]]:
        """Every run of bytes that a worker with the arena at ``base`` is given, with its byte offset in the arena."""
        for chunk in self.chunks.values():
            yield chunk.offset, chunk.image
        for array in self.pointers.values():
            yield array.offset, array.image(base)

    @property
    def device_type(self) -> str:
        """Where they are; without tensors on the CPU."""
        return next((chunk.image.device.type for chunk in self.chunks.values()), "cpu")

    def arguments(self) -> dict[str, Any]:
        """Arguments by name as the reference takes them: logical views of the images, and scalars."""
        return self._by_name(lambda chunk: chunk.view(chunk.image))

    def stored_arguments(self) -> dict[str, Any]:
        """The same, each tensor in a storage of its own that is laid out as the candidate's."""
        return self._by_name(Chunk.alone)

    def _by_name(self, tensor: Callable[[Chunk], torch.Tensor]) -> dict[str, Any]:
        def logical(value: Any) -> Any:
            if isinstance(value, TensorSpec):
                return tensor(self.chunks[value.name])
            return [logical(each) for each in value] if isinstance(value, tuple) else value

        return {argument.name: logical(argument.value) for argument in self.bound.arguments}

    def message(self, entry: str, out_offset: int, out_bytes: int, as_storage: bool = False) -> dict[str, Any]:
        """The call as it travels to a worker; ``as_storage``: with the matrices in place of pointers to them."""
        positional, keyword = [], {}
        for argument in self.bound.arguments:
            value = self._encoded(argument.value, plain_type(argument.type), as_storage)
            if argument.keyword_only:
                keyword[argument.name] = value
            else:
                positional.append(value)
        return {"entry": entry, "args": positional, "kwargs": keyword, "out": [out_offset, out_bytes]}

    def _encoded(self, value: Any, type_text: str, as_storage: bool) -> Any:
        """An argument as a worker's ``_decode`` takes it."""
        if isinstance(value, TensorSpec):
            pointed = None if as_storage else self.pointers.get(value.name)
            place = (self.chunks[value.name] if pointed is None else pointed).place.to_json()
            return {**place, "lazy": value.lazy} if value.lazy else place
        if isinstance(value, tuple):
            return [self._encoded(each, type_text, as_storage) for each in value]
        if value is not None and type_text in TORCH_NAMES:
            return {"torch": value}
        return {type_text: value} if value is not None and type_text in MADE_BY_WORKER else encode_scalar(value)


def make_inputs(overload: Overload, bound: BoundCase, generator: torch.Generator) -> CallInputs:
    """Fresh inputs for one call, at the arena's start. Raises ValueError for an unknown draw."""
    device = generator.device
    chunks: dict[str, Chunk] = {}
    pointers: dict[str, PointerArray] = {}
    offset = 0
    for spec in bound.specs:
        chunk = Chunk(spec, offset, _image(spec, bound.case.variables, generator, device))
        chunks[spec.name] = chunk
        offset = round_up(offset + chunk.image.numel(), ALIGNMENT_BYTES)
        if spec.passed == "pointers":
            pointers[spec.name] = PointerArray(offset, _steps(chunk, device))
            offset = round_up(offset + pointers[spec.name].nbytes, ALIGNMENT_BYTES)
    inputs = CallInputs(bound, chunks, offset, 0, pointers)
    if overload.prepare is not None:
        load_function(overload.prepare)(inputs.arguments(), bound.case.variables, generator)
    return inputs


def writable(chunk: Chunk, variables: dict[str, Any]) -> torch.Tensor:
    """bool (storage elements,): the elements of this chunk's storage that a call may write."""
    spec, device = chunk.spec, chunk.image.device
    mask = torch.zeros(spec.extent, dtype=torch.bool, device=device)
    if spec.access != "read":
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
    """Whether a call is given values in it, and not poison alone."""
    return spec.access != "write" and spec.extent > 0


def drawn_shape(spec: TensorSpec) -> tuple[int, ...]:
    """The argument's shape, with one value in each expanded dimension."""
    return tuple(1 if stride == 0 else size for size, stride in zip(spec.shape, spec.strides, strict=True))


def draw_into(views: torch.Tensor, spec: TensorSpec, variables: dict[str, Any], generator: torch.Generator) -> None:
    """Draw one argument of several calls. ``views``: (calls, *drawn_shape(spec)), within their poisoned storage."""
    calls, *shape = views.shape
    name, arguments = spec.draw.name, spec.draw.arguments
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
    """Byte offset in the arena of each matrix of a batch."""
    spec = chunk.spec
    slots = torch.tensor(spec.slots or range(spec.shape[0]), dtype=torch.int64, device=device)
    return chunk.place.storage_offset_bytes + slots * (spec.strides[0] * itemsize(spec.dtype))


def _logical(chunk: torch.Tensor, spec: TensorSpec, shape: tuple[int, ...]) -> torch.Tensor:
    storage = chunk[GUARD_BYTES : chunk.numel() - GUARD_BYTES].view(getattr(torch, spec.dtype))
    return storage.as_strided(shape, spec.strides, storage.storage_offset() + spec.offset)


# --- draws: name -> function of (shape, dtype, generator, *arguments) -> tensor of that shape and dtype ---


def draw(
    name: str, arguments: tuple[Any, ...], shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator
) -> torch.Tensor:
    """Values by a draw's name. Raises ValueError naming the draws there are."""
    if name not in DRAWS:
        raise ValueError(f"unknown draw '{name}'; there are {', '.join(sorted(DRAWS))}")
    values: torch.Tensor = DRAWS[name](shape, dtype, generator, *arguments)
    # What a value beyond fp8's range becomes differs between versions of torch.
    return stored_as(values, dtype) if dtype in FP8 else values.to(dtype)


def _normal(shape: Any, dtype: torch.dtype, generator: torch.Generator, mean: float = 0.0, std: float = 1.0) -> Any:
    """Of whole numbers -9 to 9, or 0 to 9 where there are none below 0; of truth values both."""
    if not (dtype.is_floating_point or dtype.is_complex):
        least, most = (0, 1) if dtype == torch.bool else (-9 if dtype.is_signed else 0, 9)
        return _integers(shape, dtype, generator, least, most)
    values = torch.randn(shape, generator=generator, device=generator.device, dtype=_draw_dtype(dtype))
    if std != 1.0:
        values *= std
    return values if mean == 0.0 else values.add_(mean)


def _uniform(shape: Any, dtype: torch.dtype, generator: torch.Generator, low: float = 0.0, high: float = 1.0) -> Any:
    unit = torch.rand(shape, generator=generator, device=generator.device, dtype=_draw_dtype(dtype))
    return unit * (high - low) + low


def _integers(shape: Any, dtype: torch.dtype, generator: torch.Generator, low: int, high: int) -> Any:
    values = torch.randint(int(low), int(high) + 1, shape, generator=generator, device=generator.device)
    if dtype.is_complex:
        other = torch.randint(int(low), int(high) + 1, shape, generator=generator, device=generator.device)
        return torch.complex(values.to(torch.float64), other.to(torch.float64))
    return values


def _odd_integers(shape: Any, dtype: torch.dtype, generator: torch.Generator, limit: int) -> Any:
    """Odd integers in ±limit: more significant bits than a shortened mantissa holds, zero mean."""
    half = (int(limit) + 1) // 2
    values = _integers(shape, dtype, generator, -half, half - 1) * 2
    return values + (1 + 1j if dtype.is_complex else 1)


def _signs(shape: Any, dtype: torch.dtype, generator: torch.Generator) -> Any:
    return _integers(shape, dtype, generator, -1, 1)


def _full(shape: Any, dtype: torch.dtype, generator: torch.Generator, value: Any) -> Any:
    return torch.full(shape, value, dtype=dtype, device=generator.device)


def _zeros(shape: Any, dtype: torch.dtype, generator: torch.Generator) -> Any:
    return torch.zeros(shape, dtype=dtype, device=generator.device)


def _arange(shape: Any, dtype: torch.dtype, generator: torch.Generator, start: int = 0) -> Any:
    count = torch.Size(shape).numel()
    return torch.arange(int(start), int(start) + count, device=generator.device).reshape(shape)


def _distinct(shape: Any, dtype: torch.dtype, generator: torch.Generator, limit: int) -> Any:
    """No value twice, from 0 to limit - 1."""
    count = torch.Size(shape).numel()
    if count > limit:
        raise ValueError(f"distinct({limit}) cannot fill {count} elements")
    return torch.randperm(int(limit), generator=generator, device=generator.device)[:count].reshape(shape)


def _permutation(shape: Any, dtype: torch.dtype, generator: torch.Generator) -> Any:
    return _distinct(shape, dtype, generator, torch.Size(shape).numel())


def _extreme_integers(shape: Any, dtype: torch.dtype, generator: torch.Generator, share: float) -> Any:
    values = _normal(shape, dtype, generator)
    if dtype == torch.bool:
        return values
    table = torch.tensor([torch.iinfo(dtype).min, torch.iinfo(dtype).max, 0, 1], device=generator.device)
    picks = torch.randint(0, len(table), shape, generator=generator, device=generator.device)
    return torch.where(torch.rand(shape, generator=generator, device=generator.device) < share, table[picks], values)


def _special(shape: Any, dtype: torch.dtype, generator: torch.Generator, share: float = 0.1) -> Any:
    """Normal values with NaN, both infinities, both zeros, denormals and the largest finite mixed in; of whole numbers
    the least and the largest.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        return _extreme_integers(shape, dtype, generator, share)
    info = torch.finfo(dtype)
    table = torch.tensor(
        [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, info.smallest_normal / 2, info.max, info.min],
        dtype=torch.float64,
        device=generator.device,
    )
    values = _normal(shape, dtype, generator).to(torch.complex128 if dtype.is_complex else torch.float64)
    picks = torch.randint(0, len(table), shape, generator=generator, device=generator.device)
    chosen = torch.rand(shape, generator=generator, device=generator.device) < share
    return torch.where(chosen, table[picks].to(values.dtype), values)


def _dominant(shape: Any, dtype: torch.dtype, generator: torch.Generator) -> Any:
    """Square matrices whose triangular halves are well conditioned: diagonal ±[1, 2], the rest small."""
    size = shape[-1]
    values = _normal(shape, dtype, generator) * (0.5 / max(size, 1) ** 0.5)
    diagonal = _uniform(shape[:-1], torch.float64, generator, 1.0, 2.0)
    sign = _integers(shape[:-1], torch.float64, generator, 0, 1) * 2 - 1
    values.diagonal(dim1=-2, dim2=-1).copy_((diagonal * sign).to(values.dtype))
    return values


def _choice(shape: Any, dtype: torch.dtype, generator: torch.Generator, options: tuple[Any, ...]) -> Any:
    table = torch.tensor(options, device=generator.device)
    return table[torch.randint(0, len(options), shape, generator=generator, device=generator.device)]


def _draw_dtype(dtype: torch.dtype) -> torch.dtype:
    if dtype.is_complex or dtype == torch.float64:
        return dtype
    return torch.float32


DRAWS: Final[dict[str, Callable[..., Any]]] = {
    "normal": _normal,
    "uniform": _uniform,
    "integers": _integers,
    "odd_integers": _odd_integers,
    "signs": _signs,
    "full": _full,
    "zeros": _zeros,
    "arange": _arange,
    "distinct": _distinct,
    "permutation": _permutation,
    "special": _special,
    "dominant": _dominant,
    "choice": _choice,
}
