"""A call's arguments from a message, and what came back as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import torch

from kgbench.harness.wire.buffers import LAZY_BITS, SharedBuffer, TensorPlace, decode_tensor, tensor_at
from kgbench.harness.wire.protocol import Message, decode_scalar, encode_scalar

PLAIN_TYPES: Final = (bool, int, float, complex)
"""Types of values that an entry of kind sync returns."""


class Call(NamedTuple):
    """An entry with its arguments, and where its output goes."""

    entry: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]
    offset: int
    """Bytes from the start of the buffer."""
    capacity: int
    """Bytes that the output may have."""


def decode(value: Any, buffer: SharedBuffer, moved: int, device_kind: str) -> Any:
    """An argument from ``CallInputs.encoded``."""
    return decode_argument(
        value,
        lambda told: _decoded_tensor(told, buffer, moved),
        device_kind,
        # Every call of a window has its own.
        lambda seed: torch.Generator(device_kind).manual_seed(seed + moved),
    )


def decode_argument(
    value: Any, tensor: Callable[[Message], Any], device: str, generator: Callable[[int], torch.Generator]
) -> Any:
    """An argument from ``machine.arguments.encoded_call``.

    ``tensor`` makes one of its description, ``generator`` of a seed.
    """
    if isinstance(value, dict):
        if "host" in value or "tensor" in value:
            return tensor(value)
        if "torch" in value:
            return getattr(torch, value["torch"])
        if "device" in value:
            return torch.device(device)
        if "Generator" in value:
            return generator(value["Generator"])
    if isinstance(value, list):
        return [decode_argument(each, tensor, device, generator) for each in value]
    return decode_scalar(value)


def _decoded_tensor(told: Message, buffer: SharedBuffer, moved: int) -> torch.Tensor:
    if "host" in told:
        return decode_tensor(told)
    offset, nbytes, dtype, shape, strides, start = told["tensor"]
    tensor = tensor_at(buffer, TensorPlace(offset + moved, nbytes, dtype, tuple(shape), tuple(strides), start))
    return LAZY_BITS[told.get("lazy", "")](tensor)


def _tensors(values: Sequence[Any]) -> list[torch.Tensor]:
    """All tensors of a call's arguments in their order, those of lists included."""
    flat = [each for value in values for each in (value if isinstance(value, list) else [value])]
    return [value for value in flat if isinstance(value, torch.Tensor)]


def as_tuple(outputs: Any) -> tuple[Any, ...]:
    """What an entry returned, one by one."""
    if type(outputs) in (tuple, list):
        return tuple(outputs)
    return () if outputs is None else (outputs,)


def dense(tensor: torch.Tensor) -> tuple[int, ...]:
    """Strides of a tensor of this shape without gaps."""
    strides, step = [], 1
    for size in reversed(tensor.shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def claim(output: Any, call: Call, base: int) -> Message:
    """What a returned value is by its own word, and which of the call's tensors it shares memory with.

    ``base``: the buffer's address; ``at`` is how many bytes after it the tensor's first element lies.
    """
    if type(output) in PLAIN_TYPES:
        return {"type": type(output).__name__, "value": encode_scalar(output)}
    if type(output) is not torch.Tensor:
        kind = type(output)
        return {"type": f"{kind.__module__}.{kind.__qualname__}"[:200]}
    inputs = _tensors([*call.args, *call.kwargs.values()])
    storage = output.untyped_storage().data_ptr()
    shares = [index for index, value in enumerate(inputs) if value.untyped_storage().data_ptr() == storage]
    return {
        "type": "Tensor",
        "dtype": str(output.dtype).removeprefix("torch."),
        "shape": list(output.shape),
        "strides": list(output.stride()),
        "offset": output.storage_offset(),
        "at": output.data_ptr() - base,
        "device": output.device.type,
        "requires_grad": output.requires_grad,
        "lazy": [output.is_conj(), output.is_neg()],
        "shares": shares if output.numel() else [],
    }
