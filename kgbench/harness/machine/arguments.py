"""Arguments of a call as they travel to a process that makes it. No torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from kgbench.harness.wire.protocol import Message, encode_scalar
from kgbench.problem.cases import BoundCase, TensorSpec
from kgbench.problem.model import plain_type

TORCH_NAMES: Final = ("dtype", "layout", "memory_format")
"""Argument types whose values travel as names within torch."""
MADE_BY_WORKER: Final = ("device", "Generator")
"""Argument types whose values only the process that makes the call can make."""


def encoded_call(bound: BoundCase, tensor: Callable[[TensorSpec], Message]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments as ``candidate.calls.decode_argument`` takes them.

    ``tensor``: a tensor in the form that its ``tensor`` takes.
    """
    return bound.passed(lambda each: _encoded(each.value, plain_type(each.type), tensor))


def _encoded(value: Any, type_text: str, tensor: Callable[[TensorSpec], Message]) -> Any:
    if isinstance(value, TensorSpec):
        return tensor(value)
    if isinstance(value, tuple):
        return [_encoded(each, type_text, tensor) for each in value]
    if value is not None and type_text in TORCH_NAMES:
        return {"torch": value}
    return {type_text: value} if value is not None and type_text in MADE_BY_WORKER else encode_scalar(value)
