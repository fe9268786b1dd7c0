"""References of ATen's creation and host-sync operators: what is in the memory that they return, or read from it.

Each takes its entry's parameters by name. Layout and device of what is created are judged by ATen's own rules.
"""

from __future__ import annotations

from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.aten_index import torch_dtype


def arange(start: Any, end: Any, step: Any = 1, dtype: Any = None, **rest: Any) -> Expected:
    """start + i * step; the error scale is |start| + |i * step|, since the sum may cancel.

    For an integer dtype ATen cuts start and step off first; of int64 end as well, before elements are counted.
    """
    wanted = torch_dtype(dtype)
    whole = wanted is not None and not wanted.is_floating_point
    first, by = (int(start), int(step)) if whole else (start, step)
    if wanted == torch.int64:
        start, end, step = first, int(end), by
    if all(isinstance(each, int) for each in (start, end, step)):
        return Expected(torch.arange(start, end, step, dtype=torch.int64))
    count = len(torch.arange(start, end, step, dtype=torch.float64))
    if whole:
        return Expected(torch.tensor([first + i * by for i in range(count)], dtype=torch.int64).to(wanted))
    index = torch.arange(count, dtype=torch.float64)
    return Expected(first + index * by, abs(first) + (index * by).abs())


def empty_strided(size: Any, **rest: Any) -> torch.Tensor:
    """A tensor of the correct shape; nothing looks at its values."""
    return torch.zeros(size)


def full(size: Any, fill_value: Any, **rest: Any) -> torch.Tensor:
    """Integers and truth values as they are, other numbers in the widest dtype of their kind."""
    return torch.full(size, fill_value, dtype=_wide(fill_value))


def zeros(size: Any, **rest: Any) -> torch.Tensor:
    return torch.zeros(size, dtype=torch.float64)


def new_ones(self: torch.Tensor, size: Any, **rest: Any) -> torch.Tensor:
    return torch.ones(size, dtype=torch.float64)


def zeros_like(self: torch.Tensor, **rest: Any) -> torch.Tensor:
    return torch.zeros(self.shape, dtype=torch.float64)


def ones_like(self: torch.Tensor, **rest: Any) -> torch.Tensor:
    return torch.ones(self.shape, dtype=torch.float64)


def scalar_tensor(s: Any, **rest: Any) -> torch.Tensor:
    return torch.tensor(s, dtype=_wide(s))


def item(self: torch.Tensor) -> bool | int | float | complex:
    """The one element as the Python number that holds it exactly."""
    value: bool | int | float | complex = self.cpu().resolve_conj().reshape(()).item()
    return value


def _wide(number: Any) -> torch.dtype | None:
    if isinstance(number, complex):
        return torch.complex128
    return torch.float64 if isinstance(number, float) else None
