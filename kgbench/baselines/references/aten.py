"""References of ATen problems: what each operator is by its definition, in float64 or exact integers.

Each function takes its entry's parameters by name; floating tensors arrive as float64, integers as they are.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from kgbench.baselines.expected import Expected

SMALLEST_NORMAL_SCALE = 1e-30
"""Smallest error scale of results that may underflow: times a few float32 eps it covers a flush to zero."""
LONGEST_CHAIN = 1 << 16
"""Number of terms that an honest kernel adds one after the other, at most."""


def softmax(self: torch.Tensor, dim: int, dtype: object = None) -> Expected:
    """exp(x - max) / sum(exp(x - max)) along ``dim``.

    The error scale is value * (1 + |x - max|): rounding of x - max is what exp amplifies. Beside the limit's 16 units
    of roundoff the sum may be off by ``chained``.
    """
    if self.numel() == 0:
        return Expected(self.clone())
    self = widened(self)
    shifted = self - self.amax(dim, keepdim=True)
    exponentials = shifted.exp()
    value = exponentials / exponentials.sum(dim, keepdim=True)
    scale = value * (1 + shifted.abs() + chained(self.shape[dim] if self.dim() else 1) / 16)
    return Expected(value, finite(scale).clamp_min(SMALLEST_NORMAL_SCALE))


def mm(self: torch.Tensor, mat2: torch.Tensor) -> Expected:
    """(m, k) @ (k, n); the error scale is sqrt(A² @ B²)."""
    return Expected(self @ mat2, finite((self**2 @ mat2**2).sqrt()))


def add(self: torch.Tensor, other: Any, alpha: Any = 1) -> Expected:
    """self + alpha * other, broadcast; exact (and wrapping) where everything is an integer.

    The error scale is |self| + |alpha * other|, since the product may be rounded before the sum cancels.
    """
    if is_exact(self, other, alpha):
        return Expected(torch.add(self, other, alpha=alpha))
    left, right = widened(self), alpha * widened(other)
    scale = finite(torch.as_tensor(abs(left) + abs(right)))
    value = left + right
    if not is_complex(value):
        return Expected(value, scale)
    parts = by_parts(alpha, widened(other))
    return Expected(value, scale, Expected(_added_by_parts(left, right if parts is None else parts), scale))


def _added_by_parts(left: Any, right: Any) -> torch.Tensor:
    """A complex sum. ATen multiplies by alpha = 1 + 0i first, so that an infinity in one part makes the other NaN."""
    (a, b), (c, d) = ((each.real, each.imag if is_complex(each) else 0.0) for each in (left, right))
    real, imaginary = torch.as_tensor(a + c).double(), torch.as_tensor(b + d).double()
    return torch.complex(real, imaginary.expand_as(real))


def sub(self: torch.Tensor, other: Any, alpha: Any = 1) -> Expected:
    """self - alpha * other, as ``add``."""
    return add(self, other, -alpha)


def rsub(self: torch.Tensor, other: Any, alpha: Any = 1) -> Expected:
    """other - alpha * self, as ``add``."""
    if is_exact(self, other, alpha):
        return Expected(torch.rsub(self, other, alpha=alpha))
    return add(other, self, -alpha)


def by_parts(left: Any, right: Any) -> torch.Tensor | None:
    """A product of a complex and a real operand, the real one times either part; None of two real or two complex ones.

    ATen makes the real one complex first, so that an infinity in one part makes the other NaN.
    """
    if is_complex(left) == is_complex(right) or not (isinstance(left, torch.Tensor) or isinstance(right, torch.Tensor)):
        return None
    number, real = (left, right) if is_complex(left) else (right, left)
    return torch.complex(*(torch.as_tensor(part * real) for part in (number.real, number.imag)))


def is_complex(operand: Any) -> bool:
    """Of a tensor or a number."""
    return operand.is_complex() if isinstance(operand, torch.Tensor) else isinstance(operand, complex)


def t(self: torch.Tensor) -> torch.Tensor:
    """The two dimensions swapped; fewer than two stay as they are."""
    return self if self.dim() < 2 else self.transpose(0, 1)


def is_exact(*operands: Any) -> bool:
    """Whether all operands, tensors and Python numbers alike, are integers or booleans."""
    return all(
        not (operand.is_floating_point() or operand.is_complex())
        if isinstance(operand, torch.Tensor)
        else isinstance(operand, int)
        for operand in operands
    )


def widened(operand: Any) -> Any:
    """A tensor in float64 or complex128; a number as it is."""
    if not isinstance(operand, torch.Tensor):
        return operand
    return operand.to(torch.complex128 if operand.is_complex() else torch.float64)


def chained(count: int) -> float:
    """Units of roundoff by which a sum of terms of one sign may be off that are added one after the other.

    Its standard deviation is sqrt(count) / 4, whatever the terms; eight of these.
    """
    return 2 * math.sqrt(min(count, LONGEST_CHAIN))


def finite(scale: torch.Tensor) -> torch.Tensor:
    """The scale with 0 where the value is not finite: there only NaN and the sign of infinity are compared."""
    return torch.nan_to_num(scale, nan=0.0, posinf=0.0)
