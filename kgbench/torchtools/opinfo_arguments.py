"""Arguments of a recorded call as data, and which overload of an ATen operator takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from kgbench.problem.calls import DTYPES, TensorLike, TorchName

Reached = tuple[str, tuple[Any, ...], dict[str, Any]]
"""An overload with the arguments of one call, tensors as TensorLike."""


# --- arguments as data ---


@dataclass(frozen=True)
class Lazy:
    tensor: TensorLike
    lazy: str


@dataclass(frozen=True)
class Unfit:
    """An argument that the trace format cannot express."""

    reason: str


def as_data(args: Any, kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return tuple(_value(each) for each in args), {name: _value(each) for name, each in kwargs.items()}


def _value(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return _tensor(value)
    if isinstance(value, (list, tuple)):
        return [_value(each) for each in value]
    if value is None or type(value) in (bool, int, float, complex, str):
        return value
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
        return TorchName(str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return "cuda"
    return Unfit(f"an argument of type {type(value).__name__}")


def _tensor(value: torch.Tensor) -> Any:
    dtype = str(value.dtype).removeprefix("torch.")
    if value.layout is not torch.strided or value.is_quantized or value.is_nested:
        return Unfit(f"a tensor of layout {value.layout}")
    if dtype not in DTYPES.values():
        return Unfit(f"a tensor of dtype {dtype}")
    strides = None if value.is_contiguous() else tuple(value.stride())
    tensor = TensorLike(tuple(value.shape), dtype, strides)
    lazy = "conj" if value.is_conj() else "neg" if value.is_neg() else ""
    return Lazy(tensor, lazy) if lazy else tensor


# --- schemas ---


def schemas_of(operator: str) -> dict[str, Any]:
    """Schemas of an ATen operator by overload."""
    packet = getattr(torch.ops.aten, operator)
    return {name: getattr(packet, name)._schema for name in packet.overloads()}


def without_out(operator: str, overloads: Sequence[str]) -> list[str]:
    """Overloads without arguments that are only written."""
    schemas = schemas_of(operator)
    return [name for name in overloads if name in schemas and not any(a.is_out for a in schemas[name].arguments)]


def parameters(schema: Any) -> dict[str, str]:
    return {each.name: str(each.type) for each in schema.arguments if not each.is_out}


def first_fitting(operator: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Reached | None:
    """The first overload without ``out`` whose schema takes these arguments."""
    for name, schema in schemas_of(operator).items():
        if not any(argument.is_out for argument in schema.arguments) and fits(schema, args, kwargs):
            return name, args, kwargs
    return None


def fits(schema: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    positional = [each for each in schema.arguments if not each.kwarg_only]
    by_name = {each.name: each for each in schema.arguments}
    if len(args) > len(positional) or not kwargs.keys() <= by_name.keys():
        return False
    given = {each.name: value for each, value in zip(positional, args, strict=False)}
    if given.keys() & kwargs.keys():
        return False
    given |= kwargs
    needed = {each.name for each in schema.arguments if not each.has_default_value()}
    return needed <= given.keys() and all(_takes(str(by_name[name].type), value) for name, value in given.items())


_TAKES: Final[dict[str, Callable[[Any], bool]]] = {
    "Tensor": lambda value: isinstance(value, (TensorLike, Lazy, Unfit)),
    "number": lambda value: isinstance(value, (bool, int, float, complex)),
    "float": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "int": lambda value: isinstance(value, (int, TorchName)) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
    "Device": lambda value: isinstance(value, str),
}


def _takes(kind: str, value: Any) -> bool:
    """Whether a schema's type takes a value. In schemas, dtypes, layouts and memory formats are of type int."""
    if kind.startswith("Optional["):
        return value is None or _takes(kind[len("Optional[") : -1], value)
    if kind.startswith("List["):
        inner = kind[len("List[") : -1]
        return isinstance(value, list) and all(_takes(inner, each) for each in value)
    return kind not in _TAKES or _TAKES[kind](value)
