"""Narrow numbers: storing values in 8-bit types without wrapping round, and which codes are right for a real value.

``stored_as`` says the same in every version of torch, which changed what a value beyond fp8's range becomes.
"""

from __future__ import annotations

from typing import Final

import torch

FP8: Final = (torch.float8_e4m3fn, torch.float8_e5m2)
"""Floating-point dtypes of 8 bits that problems use."""


def stored_as(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """``value`` in another dtype, as a copy. fp8 saturates; real numbers become the nearest integers, saturated too."""
    if dtype in FP8:
        largest = torch.finfo(dtype).max
        return value.to(torch.float32).clamp(-largest, largest).to(dtype)
    if is_grid(dtype) and value.is_floating_point():
        return saturated(torch.nan_to_num(value.round(), nan=0.0, posinf=torch.inf, neginf=-torch.inf), dtype).to(dtype)
    return value.to(dtype, copy=True)


def is_grid(dtype: torch.dtype) -> bool:
    """Integers whose ends float64 holds exactly."""
    return not dtype.is_floating_point and not dtype.is_complex and dtype != torch.bool and dtype.itemsize <= 4


def either(mask: torch.Tensor, yes: torch.Tensor, no: torch.Tensor) -> torch.Tensor:
    """``torch.where`` of two tensors of one dtype, also of fp8, of which some devices move the bytes alone."""
    return torch.where(mask, bits(yes), bits(no)).view(yes.dtype)


def bits(tensor: torch.Tensor) -> torch.Tensor:
    """fp8 as its bytes, in the same memory; other dtypes as they are."""
    return tensor.view(torch.uint8) if tensor.dtype in FP8 else tensor


def widened(tensor: torch.Tensor) -> torch.Tensor:
    """fp8 as float64, in which everything can be asked of it; other dtypes as they are."""
    return tensor.to(torch.float64) if tensor.dtype in FP8 else tensor


def saturated(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """float64 values clamped to the range of an 8-bit or integer dtype; NaN stays."""
    info = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return value.clamp(info.min, info.max)


def steps(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """float64: the distance between the codes around each finite value within the dtype's ends."""
    if not dtype.is_floating_point:
        return torch.ones_like(value)
    info = torch.finfo(dtype)
    # frexp: value = mantissa * 2**exponent with the mantissa in [0.5, 1).
    exponents = torch.frexp(value.abs().clamp(min=info.smallest_normal)).exponent.to(torch.float64)
    return torch.exp2(exponents - 1) * info.eps


def nearest_codes(low: torch.Tensor, high: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Smallest and largest code that is nearest to some real number from ``low`` to ``high`` (float64); of a tie
    both are.
    """
    low, high = saturated(low, dtype), saturated(high, dtype)
    low_step, high_step = steps(low, dtype), steps(high, dtype)
    return torch.ceil(low / low_step - 0.5) * low_step, torch.floor(high / high_step + 0.5) * high_step
