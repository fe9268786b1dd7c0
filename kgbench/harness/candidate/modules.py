"""An entry that is a module: made of a class, with state that is handed over by name, or by order and shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from kgbench.harness.wire.protocol import Message, decode_scalar
from kgbench.harness.wire.requests import MakeModule

MOST_NAMED: Final = 6
"""Most tensors that a reply names."""

Tensors = Mapping[str, torch.Tensor]


def made(
    cls: Callable[..., Any], request: MakeModule, parameters: Tensors, buffers: Tensors, device_kind: str
) -> tuple[Callable[..., Any], Message]:
    """The entry, and what to reply. Raises what the class raises, and TypeError where it makes no module."""
    model = cls(*[plain(each) for each in request.init])
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"{cls.__name__} makes a {type(model).__name__} and no torch.nn.Module")
    model = model.to(device_kind)
    fitted, unfit = fill(model, parameters, buffers)
    if unfit:
        return model, {"unfit": unfit}
    called = torch.compile(model, dynamic=False) if request.compiled else model
    return entry_of(called), {"fitted": fitted}


def entry_of(model: Callable[..., Any]) -> Callable[..., Any]:
    """The module as a function of its inputs that records no gradients and returns tensors one by one."""

    def entry(*inputs: Any) -> Any:
        with torch.no_grad():
            outputs = model(*inputs)
        return outputs if isinstance(outputs, torch.Tensor) else tuple(flat(outputs))

    return entry


def flat(value: Any) -> list[Any]:
    """What a module returned, one by one, whatever holds it."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [part for each in value if each is not None for part in flat(each)]
    return [value]


def fill(model: torch.nn.Module, parameters: Tensors, buffers: Tensors) -> tuple[str, list[str]]:
    """Copy the state in: ``name`` or ``order``, and nothing; or nothing, and what does not fit.

    By name every parameter has to find its own, on both sides. By order all parameters have to have the same shapes,
    one after the other. Buffers are copied where a name and a shape agree, or where all shapes do in their order: a
    module may keep others, or none.
    """
    own: dict[str, torch.Tensor] = dict(model.named_parameters())
    held = dict(model.named_buffers())
    if _shapes(own) == _shapes(parameters):
        way, pairs = "name", [(own[name], given) for name, given in parameters.items()]
    elif list(_shapes(own).values()) == list(_shapes(parameters).values()):
        way, pairs = "order", list(zip(own.values(), parameters.values(), strict=True))
    else:
        return "", _differences(own, parameters)
    same_order = list(_shapes(held).values()) == list(_shapes(buffers).values())
    if same_order:
        pairs += list(zip(held.values(), buffers.values(), strict=True))
    else:
        pairs += [(held[name], given) for name, given in buffers.items() if _shapes(held).get(name) == given.shape]
    with torch.no_grad():
        for place, given in pairs:
            place.copy_(given)
    return way, []


def _shapes(tensors: Tensors) -> dict[str, torch.Size]:
    return {name: each.shape for name, each in tensors.items()}


def _differences(own: Tensors, given: Tensors) -> list[str]:
    """Differences by name, and the numbers of parameters."""
    lacking = [f"no parameter {name} {list(each.shape)}" for name, each in given.items() if name not in own]
    beyond = [f"a parameter {name} {list(each.shape)} of its own" for name, each in own.items() if name not in given]
    other = [
        f"{name} is {list(own[name].shape)} and not {list(each.shape)}"
        for name, each in given.items()
        if name in own and own[name].shape != each.shape
    ]
    return [f"{len(own)} parameters, the problem's Model has {len(given)}", *(lacking + beyond + other)[:MOST_NAMED]]


def plain(value: Any) -> Any:
    """An argument of the class, from ``verdict.modules.handing.encoded``."""
    if isinstance(value, dict) and "tuple" in value:
        return tuple(plain(each) for each in value["tuple"])
    if isinstance(value, dict) and "dict" in value:
        return {plain(key): plain(each) for key, each in value["dict"]}
    if isinstance(value, dict) and "torch" in value:
        return getattr(torch, value["torch"])
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(each) for each in value]
    return decode_scalar(value)
