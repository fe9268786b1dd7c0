"""Decides whether an output is correct: limits from the arithmetic of the operator, not from one flat number.

With ``r`` the reference, ``m`` the magnitude a reference gives for rounding (``|r|`` where it gives none), ``eps`` the
unit roundoff of the arithmetic and ``L`` the number of terms summed:

- accumulate: ``|e| <= eps * max(96, 12 sqrt(L)) * max(m, |r|)`` per element, and
  ``rms(e) <= eps * max(16, 2 sqrt(L)) * rms(max(m, |r|))`` over the output;
- rounding: ``|e| <= 2 eps * ulps * max(m, |r|)``;
- quantize: where the reference gives real numbers for an output of integers or fp8, any code that is nearest to a
  number within ``2 eps * ulps * max(m, |r|)`` of ``r``, saturated; integers for integers are exact, the rest rounding;
- exact: equal.

An output of 16 or fewer bits is allowed one unit in its last place on top. Where the reference itself has no more
precision than the output (float64, complex128) the limit is doubled. NaN must be where the reference has NaN,
infinities must have its sign, and -0 equals 0. Of a complex number with an infinite part the finite part has the limit
of its own size. The factors are measured: honest float32 products, summed in any order,
use at most 18 % of the limit on zero-mean data, and TF32 exceeds it 13 to 240 times.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import torch

from kgbench.baselines.expected import Expected
from kgbench.core.details.values import EXACT, Mismatch, RootMeanSquare
from kgbench.harness.verdict.narrow_dtypes import FP8, is_grid, nearest_codes, saturated, steps, stored_as, widened

_NARROW: Final = (torch.float16, torch.bfloat16, *FP8)
"""dtypes whose arithmetic is float32 unless the problem says otherwise."""
_RMS_NEEDS_ELEMENTS: Final = 64
"""Fewest comparable elements of an output whose root mean square error is judged."""
PIECES: Final = {"cpu": 1 << 18, "cuda": 1 << 24}
"""Elements of an output that are compared at a time, by kind of device. Comparing takes some 80 bytes for each, which
on a CPU are to fit into its caches.
"""


@dataclass(frozen=True)
class Limits:
    """A tolerance with the values of one case filled in."""

    rule: str
    length: float = 1.0
    ulps: float = 4.0
    compute: str | None = None
    """dtype of the arithmetic; None is float32 for outputs of up to 32 bits, else the output's own."""
    exact: bool = False

    def element_factor(self) -> float:
        """Multiples of eps allowed at one element."""
        if self.rule == "accumulate":
            return max(96.0, 12.0 * math.sqrt(self.length))
        return 2.0 * self.ulps

    def rms_factor(self) -> float | None:
        """Multiples of eps allowed in the root mean square; None where the rule has no such test."""
        return max(16.0, 2.0 * math.sqrt(self.length)) if self.rule == "accumulate" else None


def compare(name: str, got: torch.Tensor, expected: Expected, limits: Limits) -> Mismatch | RootMeanSquare | None:
    """The first wrong element of ``got``, or that all together are too far off, or None.

    ``got``: the output in its own dtype, shape of the reference.
    """
    if got.numel() == 0:
        return None
    first: Mismatch | None = None
    wrong_elements, sums = 0, _Sums()
    for begin, some, right, found in _compared_pieces(got, expected, limits, sums):
        if bool(found.wrong.any()):
            first = first or _mismatch(name, got, begin, some, right, found)
            wrong_elements += int(found.wrong.sum())
    if first is not None:
        return replace(first, wrong_share=wrong_elements / got.numel())
    return _together(name, got, sums, limits)


def is_doubtful(got: torch.Tensor, expected: Expected, limits: Limits) -> torch.Tensor:
    """bool, no dimensions, on the output's device: whether ``compare`` finds something. Waits for no device."""
    if got.numel() == 0:
        return torch.zeros((), dtype=torch.bool, device=got.device)
    sums = _Sums()
    flags = [found.wrong.any() for _, _, _, found in _compared_pieces(got, expected, limits, sums)]
    return torch.stack([*flags, *sums.beyond(limits)]).any()


def _compared_pieces(
    got: torch.Tensor, expected: Expected, limits: Limits, sums: _Sums
) -> Iterator[tuple[int, torch.Tensor, Expected, _Errors | _Codes | _Unequal]]:
    """The pieces of an output, what is correct and what was found; errors whose mean counts go to ``sums``."""
    for begin, some, right in _pieces(got, expected):
        right = nearest_correct(some, right, limits)
        found = _compared(some, right, limits)
        if isinstance(found, _Errors) and limits.rms_factor() is not None and got.numel() >= _RMS_NEEDS_ELEMENTS:
            sums.add(found)
        yield begin, some, right, found


def _pieces(got: torch.Tensor, expected: Expected) -> Iterator[tuple[int, torch.Tensor, Expected]]:
    """The output in pieces with the place of the first element: whole, or flat."""
    most = PIECES[got.device.type]
    if got.numel() <= most:
        yield 0, got, expected
        return
    right = expected.flat()
    for number, piece in enumerate(pieces(got)):
        yield number * most, piece, right.part(slice(number * most, (number + 1) * most))


def pieces(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """All elements in row-major order, as many at a time as are compared at a time."""
    flat, most = tensor.reshape(-1), PIECES[tensor.device.type]
    return (flat[begin : begin + most] for begin in range(0, len(flat), most))


def _compared(got: torch.Tensor, expected: Expected, limits: Limits) -> _Errors | _Codes | _Unequal:
    if _is_quantized(got, expected.value, limits):
        return _codes(got, expected, limits)
    if _is_exact(got, limits):
        return _Unequal(_unequal(got, expected.value))
    return _errors(got, expected, limits)


def share_used(got: torch.Tensor, expected: Expected, limits: Limits) -> float:
    """How much of the limit an output uses at its worst element or in the root mean square; infinite where wrong."""
    if compare("", got, expected, limits) is not None:
        return math.inf
    if got.numel() == 0:
        return 0.0
    expected = nearest_correct(got, expected, limits)
    if _is_quantized(got, expected.value, limits):
        return _codes(got, expected, limits).share
    if _is_exact(got, limits):
        return 0.0
    errors = _errors(got, expected, limits)
    usable = errors.finite & torch.isfinite(widened(got))
    share = float((errors.error / errors.limit)[usable].max()) if bool(usable.any()) else 0.0
    sums = _Sums()
    sums.add(errors)
    rms, allowed = sums.rms(limits)
    return max(share, rms / allowed if allowed else 0.0)


def nearest_correct(got: torch.Tensor, expected: Expected, limits: Limits) -> Expected:
    """What is correct, where two outputs are: the other one's elements where an element is not the first one's."""
    other = expected.also
    if other is None:
        return expected
    other = nearest_correct(got, other, limits)
    takes = _wrong(got, expected, limits) & ~_wrong(got, other, limits)
    value = torch.where(takes, other.value.to(expected.value.dtype), expected.value)
    if expected.magnitude is None and other.magnitude is None:
        return Expected(value)
    theirs, own = (each.value.abs() if each.magnitude is None else each.magnitude for each in (other, expected))
    return Expected(value, torch.where(takes, theirs, own))


def _wrong(got: torch.Tensor, expected: Expected, limits: Limits) -> torch.Tensor:
    """bool, shape of the output: the elements that are beyond their limits."""
    if _is_quantized(got, expected.value, limits):
        return _codes(got, expected, limits).wrong
    if _is_exact(got, limits):
        return _unequal(got, expected.value)
    return _errors(got, expected, limits).wrong


def _unequal(got: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    actual, wanted = widened(got), widened(stored_as(value, got.dtype))
    return ~((actual == wanted) | (_isnan(actual) & _isnan(wanted)))


@dataclass(frozen=True)
class _Errors:
    """Every element's error and limit."""

    value: torch.Tensor
    scale: torch.Tensor
    finite: torch.Tensor
    """bool: elements whose correct value is finite, and not infinite in the output's type."""
    error: torch.Tensor
    rounding: torch.Tensor
    limit: torch.Tensor
    wrong: torch.Tensor
    eps: float


@dataclass(frozen=True)
class _Unequal:
    """Elements that must be equal and are not."""

    wrong: torch.Tensor
    limit: None = None


@dataclass(frozen=True)
class _Codes:
    """Limits of codes (integers or fp8 that stand for real numbers), and the share of the rounding limit used by the
    worst.
    """

    wrong: torch.Tensor
    limit: torch.Tensor
    excess: torch.Tensor
    """How far an element is from the nearest code, beyond half a step."""
    slack: torch.Tensor
    """What rounding before the code may add."""
    finite: torch.Tensor

    @property
    def share(self) -> float:
        """Waits for the device."""
        at = self.finite & (self.slack > 0)
        share = self.excess[at] / self.slack[at]
        return float(share.max().clamp(max=1)) if share.numel() else 0.0


def _is_quantized(got: torch.Tensor, value: torch.Tensor, limits: Limits) -> bool:
    codes = got.dtype in FP8 or is_grid(got.dtype)
    return limits.rule == "quantize" and not limits.exact and codes and value.is_floating_point()


def _codes(got: torch.Tensor, expected: Expected, limits: Limits) -> _Codes:
    value, actual = expected.value.to(torch.float64), got.to(torch.float64)
    finite = torch.isfinite(value)
    slack = 2.0 * limits.ulps * _unit_roundoff(got.dtype, limits) * _scale(value, expected.magnitude, finite)
    low, high = nearest_codes(value - slack, value + slack, got.dtype)
    # What NaN becomes as an integer is undefined.
    nan = torch.isnan(value) & (torch.isnan(actual) if got.is_floating_point() else True)
    clamped = saturated(value, got.dtype)
    half = steps(clamped, got.dtype) / 2
    return _Codes(
        wrong=~(nan | ((actual >= low) & (actual <= high))),
        limit=half + slack,
        excess=((actual - clamped).abs() - half).clamp(min=0),
        slack=slack,
        finite=finite,
    )


def _is_exact(got: torch.Tensor, limits: Limits) -> bool:
    return limits.exact or limits.rule == "exact" or not (got.is_floating_point() or got.is_complex())


def _errors(got: torch.Tensor, expected: Expected, limits: Limits) -> _Errors:
    wide = torch.complex128 if got.is_complex() else torch.float64
    value, actual = expected.value.to(wide), got.to(wide)
    finite = torch.isfinite(value)
    scale = _scale(value, expected.magnitude, finite)
    eps, rounding = _units(got.dtype, value, limits)
    limit = eps * limits.element_factor() * scale + rounding
    error = (actual - value).abs()
    # A value that rounds to infinity in the output's type may be infinite there, or the largest where it saturates.
    stored = stored_as(value, got.dtype).to(wide)
    overflow = finite & (
        ~torch.isfinite(stored) | (saturated(value, got.dtype) != value if got.dtype in FP8 else False)
    )
    same = (actual == value) | (_isnan(actual) & _isnan(value)) | (overflow & (actual == stored))
    if got.is_floating_point() and got.dtype not in FP8:
        # So may one that an error within the limit takes there.
        same |= finite & torch.isinf(actual) & (actual == stored_as(value + limit * value.sign(), got.dtype).to(wide))
    if got.is_complex():
        same |= (overflow | ~finite) & _each_part_same(actual, stored, eps * limits.element_factor(), rounding)
    wrong = ~(same | (finite & torch.isfinite(actual) & (error <= limit)))
    return _Errors(value, scale, finite & ~overflow, error, rounding, limit, wrong, eps)


def _each_part_same(actual: torch.Tensor, value: torch.Tensor, factor: float, rounding: torch.Tensor) -> torch.Tensor:
    """Whether both parts of complex numbers are right by themselves: an infinite one by its sign, a finite one within
    the limit of its own size. A modulus that is infinite gives no limit.
    """
    found, wanted = (torch.view_as_real(each.resolve_conj()) for each in (actual, value))
    close = torch.isfinite(wanted) & ((found - wanted).abs() <= factor * wanted.abs() + rounding[..., None])
    return ((found == wanted) | (torch.isnan(found) & torch.isnan(wanted)) | close).all(-1)


def _units(dtype: torch.dtype, value: torch.Tensor, limits: Limits) -> tuple[float, torch.Tensor]:
    """Unit roundoff of the arithmetic, and what rounding to the output's type may add per element."""
    info = torch.finfo(dtype)
    eps = _unit_roundoff(dtype, limits)
    # Below this the output's own spacing is the error.
    tiny = info.smallest_normal * info.eps
    rounding = torch.full_like(value.abs(), tiny)
    if dtype in _NARROW:
        rounding = rounding + info.eps * value.abs()
    if dtype in (torch.float64, torch.complex128):
        eps *= 2
    return eps, rounding


def _unit_roundoff(dtype: torch.dtype, limits: Limits) -> float:
    """The unit roundoff of the arithmetic behind an output of this dtype."""
    own = dtype if dtype.is_floating_point or dtype.is_complex else torch.float32
    compute = getattr(torch, limits.compute) if limits.compute else torch.float32 if own in _NARROW else own
    return float(torch.finfo(compute).eps) / 2


def _scale(value: torch.Tensor, magnitude: torch.Tensor | None, finite: torch.Tensor) -> torch.Tensor:
    """The magnitude of which an element's limit is a multiple."""
    scale = value.abs() if magnitude is None else torch.maximum(magnitude, value.abs())
    return torch.where(torch.isfinite(scale), scale, torch.where(finite, value.abs(), torch.zeros_like(scale)))


class _Sums:
    """Number of comparable elements, and squares of their errors, scales and roundings, summed over pieces."""

    def __init__(self) -> None:
        self.total: torch.Tensor | None = None
        self.eps = 0.0

    def add(self, errors: _Errors) -> None:
        usable = errors.finite
        squares = [
            torch.where(usable, each, 0.0).square().sum() for each in (errors.error, errors.scale, errors.rounding)
        ]
        sums = torch.stack([usable.sum().double(), *squares])
        self.total = sums if self.total is None else self.total + sums
        self.eps = errors.eps

    def beyond(self, limits: Limits) -> list[torch.Tensor]:
        """bool, no dimensions: whether the root mean square is above what is allowed; none where the rule has no such
        test. Waits for no device.
        """
        figures = self._figures(limits)
        return [] if figures is None else [~(figures[0] <= figures[1])]

    def rms(self, limits: Limits) -> tuple[float, float]:
        """Root mean square of the errors and what is allowed; the latter 0 where the rule has no such test."""
        figures = self._figures(limits)
        if figures is None:
            return 0.0, 0.0
        # One transfer: each waits for the device, which others use, too.
        rms, allowed = figures.tolist()
        return rms, allowed

    def _figures(self, limits: Limits) -> torch.Tensor | None:
        """float64 (2,): what ``rms`` returns, zeros where too few elements are comparable; None where there is no such
        test.
        """
        factor = limits.rms_factor()
        if factor is None or self.total is None:
            return None
        count = self.total[0]
        rms, scale, rounding = (self.total[1:] / count).sqrt()
        figures = torch.stack([rms, self.eps * factor * scale + 0.6 * rounding])
        return torch.where(count >= _RMS_NEEDS_ELEMENTS, figures, 0.0)


def _together(name: str, got: torch.Tensor, sums: _Sums, limits: Limits) -> RootMeanSquare | None:
    rms, allowed = sums.rms(limits)
    if rms <= allowed:
        return None
    return RootMeanSquare(name, rms, allowed, tuple(got.shape), str(got.dtype).removeprefix("torch."))


def _mismatch(
    name: str, got: torch.Tensor, begin: int, some: torch.Tensor, right: Expected, found: _Errors | _Codes | _Unequal
) -> Mismatch:
    """The first wrong element of a piece. ``begin``: the piece's place in the output, in row-major order."""
    at = int(found.wrong.reshape(-1).view(torch.uint8).argmax())
    value = found.value if isinstance(found, _Errors) else right.value
    return Mismatch(
        output=name,
        index=tuple(int(each) for each in np.unravel_index(begin + at, tuple(got.shape))),
        got=_show(some.reshape(-1)[at]),
        wanted=_show(value.reshape(-1)[at]),
        limit=EXACT if found.limit is None else f"{float(found.limit.reshape(-1)[at]):.3g}",
        wrong_share=0.0,
        shape=tuple(got.shape),
        dtype=str(got.dtype).removeprefix("torch."),
    )


def _isnan(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_floating_point() or tensor.is_complex():
        return torch.isnan(tensor)
    return torch.zeros_like(tensor, dtype=torch.bool)


def _show(element: torch.Tensor) -> str:
    value = element.item()
    return f"{value:.9g}" if isinstance(value, (float, complex)) else str(value)
