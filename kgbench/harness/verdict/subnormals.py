"""Numbers below the smallest normal one, which a kernel may take for zero, as NVIDIA's ``.ftz`` instructions do.

They are float32's below 2 ** -126, and bfloat16's, which is computed in float32. float16 numbers of that name are
normal in float32, and float64 is never flushed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import torch

from kgbench.baselines.expected import Expected

DTYPES: Final = (torch.float32, torch.bfloat16, torch.complex64)
SMALLEST_NORMAL: Final = 2.0**-126


def with_zeros(
    expected: Mapping[str, Expected],
    outputs: Mapping[str, torch.Tensor],
    arguments: Mapping[str, Any],
    answer: Callable[[Mapping[str, Any]], Mapping[str, Expected]],
) -> dict[str, Expected]:
    """What is correct, and what is accepted too: with zeros for subnormal numbers in arguments, in results or in both.

    ``answer``: what is correct, by output, of other arguments.
    """
    flushed = {name: _zeroed(value) for name, value in arguments.items()}
    is_same = all(_all(value, flushed[name], lambda a, b: a is b) for name, value in arguments.items())
    others = expected if is_same else answer(flushed)
    found = {}
    for name, right in expected.items():
        if outputs[name].dtype not in DTYPES or name not in others or others[name].shape != right.shape:
            found[name] = right
            continue
        found[name] = _with(_with(right, _small_as_zero(right)), others[name], _small_as_zero(others[name]))
    return found


def _with(right: Expected, *others: Expected) -> Expected:
    """``others`` behind what is also right."""
    if not others:
        return right
    return replace(right, also=_with(others[0], *others[1:]) if right.also is None else _with(right.also, *others))


def _small_as_zero(right: Expected) -> Expected:
    """With zeros where the value may be stored as a subnormal number."""
    small = right.value.abs() <= SMALLEST_NORMAL * (1 + 2.0**-7)
    return replace(right, value=torch.where(small, torch.zeros_like(right.value), right.value), also=None)


def _zeroed(value: Any) -> Any:
    """A tensor with zeros of their signs for subnormal numbers, itself where there are none; lists one by one."""
    if isinstance(value, list):
        return [_zeroed(each) for each in value]
    if not isinstance(value, torch.Tensor) or value.dtype not in DTYPES:
        return value
    parts = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
    small = (parts.abs() < SMALLEST_NORMAL) & (parts != 0)
    if not bool(small.any()):
        return value
    zeroed = torch.where(small, torch.copysign(torch.zeros_like(parts), parts), parts)
    return torch.view_as_complex(zeroed) if value.is_complex() else zeroed


def _all(value: Any, other: Any, holds: Callable[[Any, Any], bool]) -> bool:
    if isinstance(value, list):
        return all(_all(a, b, holds) for a, b in zip(value, other, strict=True))
    return holds(value, other)
