"""What mutants do to a tensor before they compute with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

WIDE: Final = (torch.float32, torch.float64, torch.complex64, torch.complex128)
"""dtypes that have bits to lose."""


def bfloat16(value: torch.Tensor) -> torch.Tensor:
    """float32 and wider with the seven bits of mantissa that bfloat16 keeps."""
    return _by_parts(value, lambda part: part.to(torch.bfloat16).to(part.dtype))


def tf32(value: torch.Tensor) -> torch.Tensor:
    """float32 and wider with the ten bits of mantissa that TF32 keeps."""
    return _by_parts(value, _ten_bits)


def float32(value: torch.Tensor) -> torch.Tensor:
    """float64 and complex128 with the bits of float32."""
    return _by_parts(value, lambda part: part.to(torch.float32).to(part.dtype))


def as_row_major(value: torch.Tensor) -> torch.Tensor:
    """The elements at row-major positions of the tensor's memory, from the start again past its end."""
    if value.is_contiguous() or not value.numel():
        return value
    extent = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    flat = value.as_strided((extent,), (1,), value.storage_offset())
    return flat[torch.arange(value.numel(), device=value.device) % extent].reshape(value.shape)


def _by_parts(value: torch.Tensor, rounded: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    if value.dtype not in WIDE:
        return value
    if value.is_complex():
        return torch.view_as_complex(rounded(torch.view_as_real(value)).contiguous())
    return rounded(value)


def _ten_bits(part: torch.Tensor) -> torch.Tensor:
    integer, dropped = (torch.int32, 13) if part.dtype == torch.float32 else (torch.int64, 42)
    bits = part.contiguous().view(integer)
    nearest = ((bits + (1 << (dropped - 1))) & ~((1 << dropped) - 1)).view(part.dtype)
    # The carry would turn a NaN into a number.
    return torch.where(torch.isfinite(part), nearest, part)
