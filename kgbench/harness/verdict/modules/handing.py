"""Hands a module's state to a worker: it lies in the buffer while the worker copies it into a module of its own."""

from __future__ import annotations

from typing import Any

import torch

from kgbench.core.details.where import Where
from kgbench.harness.verdict.modules.trusted import ModuleError, TrustedModule
from kgbench.harness.wire.buffers import ALIGNMENT_BYTES, TensorPlace, round_up
from kgbench.harness.wire.device import GPU
from kgbench.harness.wire.protocol import Message, encode_scalar
from kgbench.harness.wire.requests import MakeModule
from kgbench.harness.workers.started import WorkerSide


def hand_over(
    side: WorkerSide, module: TrustedModule, entry: str, timeout_s: float, where: Where, *, compiled: bool = False
) -> Message:
    """Have a worker make its module and fill the state in; its reply. Raises WorkerFailed, ModuleError."""
    places, nbytes = _places(module.state)
    buffer = side.ensure_buffer(max(nbytes, 1))
    for name, tensor in module.state.items():
        begin, size = places[name].storage_offset_bytes, places[name].storage_bytes
        buffer.bytes_at(begin, size).copy_(tensor.detach().contiguous().reshape(-1).view(torch.uint8))
    if module.device.type == "cuda":
        GPU.wait(module.device)
    known = set(module.parameters)
    named = [[name, places[name].to_json()] for name in module.state]
    parameters = [each for each in named if each[0] in known]
    buffers = [each for each in named if each[0] not in known]
    request = MakeModule(entry, [encoded(each) for each in module.init], parameters, buffers, compiled)
    reply = side.handle.request(request, timeout_s, where)
    side.unmap()
    return reply


def _places(state: dict[str, torch.Tensor]) -> tuple[dict[str, TensorPlace], int]:
    """Where each tensor lies in the buffer, and how long that is."""
    places, offset = {}, 0
    for name, tensor in state.items():
        nbytes = tensor.numel() * tensor.element_size()
        dtype, dense = str(tensor.dtype).removeprefix("torch."), tensor.contiguous().stride()
        places[name] = TensorPlace(offset, nbytes, dtype, tuple(tensor.shape), tuple(dense), 0)
        offset = round_up(offset + nbytes, ALIGNMENT_BYTES)
    return places, offset


def encoded(value: Any) -> Any:
    """An argument of the class, as JSON can hold it. Raises ModuleError for what is no plain value."""
    if isinstance(value, tuple):
        return {"tuple": [encoded(each) for each in value]}
    if isinstance(value, list):
        return [encoded(each) for each in value]
    if isinstance(value, dict):
        return {"dict": [[encoded(key), encoded(each)] for key, each in value.items()]}
    if isinstance(value, torch.dtype):
        return {"torch": str(value).removeprefix("torch.")}
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return encode_scalar(value)
    raise ModuleError(f"get_init_inputs gives a {type(value).__name__}, which cannot be handed to a candidate")
