"""Ways to draw an argument's values, by their names in problem files. Referee side only.

Each is a function of (shape, dtype, generator, *arguments) and returns a tensor of that shape, which ``draw`` casts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import torch

from kgbench.harness.verdict.narrow_dtypes import FP8, stored_as

ONE_BY_ONE: Final = ("arange", "distinct", "listed", "outer", "permutation")
"""Draws whose values depend on the shape as a whole, so that several calls cannot be drawn as one tensor."""


def draw(
    name: str, arguments: tuple[Any, ...], shape: tuple[int, ...], dtype: torch.dtype, generator: torch.Generator
) -> torch.Tensor:
    """Values by a draw's name. Raises ValueError naming the draws there are."""
    if name not in DRAWS:
        raise ValueError(f"unknown draw '{name}'; there are {', '.join(sorted(DRAWS))}")
    values: torch.Tensor = DRAWS[name](shape, dtype, generator, *arguments)
    # What a value beyond fp8's range becomes differs between versions of torch.
    return stored_as(values, dtype) if dtype in FP8 else values.to(dtype)


def _normal(shape: Any, dtype: torch.dtype, generator: torch.Generator, mean: float = 0.0, std: float = 1.0) -> Any:
    """Normal values; whole numbers from -9 to 9, from 0 where the type has none below; both truth values."""
    if not (dtype.is_floating_point or dtype.is_complex):
        least, most = (0, 1) if dtype == torch.bool else (-9 if dtype.is_signed else 0, 9)
        return _integers(shape, dtype, generator, least, most)
    values = torch.randn(shape, generator=generator, device=generator.device, dtype=_draw_dtype(dtype))
    if std != 1.0:
        values *= std
    return values if mean == 0.0 else values.add_(mean)


def _uniform(shape: Any, dtype: torch.dtype, generator: torch.Generator, low: float = 0.0, high: float = 1.0) -> Any:
    """From ``low`` to ``high``, both parts of a complex number."""
    unit = torch.rand(shape, generator=generator, device=generator.device, dtype=_draw_dtype(dtype))
    return unit * (high - low) + (complex(low, low) if dtype.is_complex else low)


def _magnitudes(shape: Any, dtype: torch.dtype, generator: torch.Generator, low: float, high: float) -> Any:
    """Values of both signs whose sizes are even on a logarithmic scale; the parts of a complex one independently."""
    if dtype.is_complex:
        parts = [_magnitudes(shape, torch.float64, generator, low, high) for _ in range(2)]
        return torch.complex(*parts)
    sizes = _uniform(shape, torch.float64, generator, math.log(low), math.log(high)).exp_()
    return torch.where(torch.rand(shape, generator=generator, device=generator.device) < 0.5, -sizes, sizes)


def _integers(shape: Any, dtype: torch.dtype, generator: torch.Generator, low: int, high: int) -> Any:
    values = torch.randint(int(low), int(high) + 1, shape, generator=generator, device=generator.device)
    if dtype.is_complex:
        other = torch.randint(int(low), int(high) + 1, shape, generator=generator, device=generator.device)
        return torch.complex(values.to(torch.float64), other.to(torch.float64))
    return values


def _odd_integers(shape: Any, dtype: torch.dtype, generator: torch.Generator, limit: int) -> Any:
    """Odd integers in ±limit: more significant bits than a shortened mantissa holds, zero mean."""
    half = (int(limit) + 1) // 2
    values = _integers(shape, dtype, generator, -half, half - 1) * 2
    return values + (1 + 1j if dtype.is_complex else 1)


def _signs(shape: Any, dtype: torch.dtype, generator: torch.Generator) -> Any:
    return _integers(shape, dtype, generator, -1, 1)


def _full(shape: Any, dtype: torch.dtype, generator: torch.Generator, value: Any) -> Any:
    return torch.full(shape, value, dtype=dtype, device=generator.device)


def _zeros(shape: Any, dtype: torch.dtype, generator: torch.Generator) -> Any:
    return torch.zeros(shape, dtype=dtype, device=generator.device)


def _arange(shape: Any, dtype: torch.dtype, generator: torch.Generator, start: int = 0) -> Any:
    count = torch.Size(shape).numel()
    return torch.arange(int(start), int(start) + count, device=generator.device).reshape(shape)


def _distinct(shape: Any, dtype: torch.dtype, generator: torch.Generator, limit: int) -> Any:
    """No value twice, from 0 to limit - 1."""
    count = torch.Size(shape).numel()
    if count > limit:
        raise ValueError(f"distinct({limit}) cannot fill {count} elements")
    return torch.randperm(int(limit), generator=generator, device=generator.device)[:count].reshape(shape)


def _permutation(shape: Any, dtype: torch.dtype, generator: torch.Generator) -> Any:
    return _distinct(shape, dtype, generator, torch.Size(shape).numel())


def _extreme_integers(shape: Any, dtype: torch.dtype, generator: torch.Generator, share: float) -> Any:
    values = _normal(shape, dtype, generator)
    if dtype == torch.bool:
        return values
    table = torch.tensor([torch.iinfo(dtype).min, torch.iinfo(dtype).max, 0, 1], device=generator.device)
    picks = torch.randint(0, len(table), shape, generator=generator, device=generator.device)
    return torch.where(torch.rand(shape, generator=generator, device=generator.device) < share, table[picks], values)


def _special(shape: Any, dtype: torch.dtype, generator: torch.Generator, share: float = 0.1) -> Any:
    """Normal values with NaN, both infinities, both zeros, denormals and the largest finite mixed in, of complex
    numbers in either part; of whole numbers the least and the largest.
    """
    if not (dtype.is_floating_point or dtype.is_complex):
        return _extreme_integers(shape, dtype, generator, share)
    info = torch.finfo(dtype)
    table = torch.tensor(
        [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, info.smallest_normal / 2, info.max, info.min],
        dtype=torch.float64,
        device=generator.device,
    )
    values = _normal(shape, dtype, generator).to(torch.complex128 if dtype.is_complex else torch.float64)
    picks = torch.randint(0, len(table), shape, generator=generator, device=generator.device)
    chosen = torch.rand(shape, generator=generator, device=generator.device) < share
    if not dtype.is_complex:
        return torch.where(chosen, table[picks], values)
    # Of each two one is special in one part: the other keeps its usual value.
    real = torch.rand(shape, generator=generator, device=generator.device) < 0.5
    parts = torch.view_as_real(values)
    places = torch.stack((chosen & real, chosen & ~real), -1)
    return torch.view_as_complex(torch.where(places, table[picks][..., None], parts))


def _dominant(shape: Any, dtype: torch.dtype, generator: torch.Generator) -> Any:
    """Square matrices whose triangular halves are well conditioned: a diagonal of size 1 to 2, the rest small.

    The diagonal has either sign, or any phase if it is complex.
    """
    size = shape[-1]
    values = _normal(shape, dtype, generator) * (0.5 / max(size, 1) ** 0.5)
    diagonal = _uniform(shape[:-1], torch.float64, generator, 1.0, 2.0)
    if values.is_complex():
        diagonal = torch.polar(diagonal, _uniform(shape[:-1], torch.float64, generator, 0.0, 2.0 * math.pi))
    else:
        diagonal *= _integers(shape[:-1], torch.float64, generator, 0, 1) * 2 - 1
    values.diagonal(dim1=-2, dim2=-1).copy_(diagonal.to(values.dtype))
    return values


def _choice(shape: Any, dtype: torch.dtype, generator: torch.Generator, options: tuple[Any, ...]) -> Any:
    table = torch.tensor(options, device=generator.device)
    return table[torch.randint(0, len(options), shape, generator=generator, device=generator.device)]


def _listed(shape: Any, dtype: torch.dtype, generator: torch.Generator, values: tuple[Any, ...]) -> Any:
    """The listed values in turn, repeated."""
    table = torch.tensor(values, dtype=torch.float64, device=generator.device)
    return table[_arange(shape, dtype, generator) % len(table)]


def _few(
    shape: Any, dtype: torch.dtype, generator: torch.Generator, options: tuple[Any, ...], share: float = 0.01
) -> Any:
    """Normal values, one at least and about a share of them replaced by one of ``options``."""
    values = _normal(shape, dtype, generator)
    picks = _choice(shape, dtype, generator, options).to(values.dtype)
    chosen = torch.rand(shape, generator=generator, device=generator.device) < share
    if chosen.numel():
        chosen.view(-1)[torch.randint(0, chosen.numel(), (1,), generator=generator, device=generator.device)] = True
    return torch.where(chosen, picks, values)


def _outer(shape: Any, dtype: torch.dtype, generator: torch.Generator, first: Any, last: Any, rest: Any = 0) -> Any:
    """One value everywhere but in the first and in the last place."""
    values = torch.full(shape, rest, dtype=dtype, device=generator.device)
    if values.numel():
        values.view(-1)[0], values.view(-1)[-1] = first, last
    return values


def _draw_dtype(dtype: torch.dtype) -> torch.dtype:
    if dtype.is_complex or dtype == torch.float64:
        return dtype
    return torch.float32


DRAWS: Final[dict[str, Callable[..., Any]]] = {
    "normal": _normal,
    "uniform": _uniform,
    "magnitudes": _magnitudes,
    "integers": _integers,
    "odd_integers": _odd_integers,
    "signs": _signs,
    "full": _full,
    "zeros": _zeros,
    "arange": _arange,
    "distinct": _distinct,
    "permutation": _permutation,
    "special": _special,
    "dominant": _dominant,
    "choice": _choice,
    "listed": _listed,
    "few": _few,
    "outer": _outer,
}
