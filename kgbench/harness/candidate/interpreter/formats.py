"""Number formats that numpy lacks, as bits in unsigned integers: bfloat16, the fp8 formats of NVIDIA's GPUs, TF32."""

from __future__ import annotations

import functools
from typing import Any, Final, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Format(NamedTuple):
    """A floating-point format of one sign bit, ``exponent`` bits and ``mantissa`` bits."""

    exponent: int
    mantissa: int
    infinite: bool
    """The largest exponent is that of infinity and NaN; otherwise only the code with all bits set is NaN."""
    saturates: bool
    """A conversion from a wider format gives the largest finite number in place of what is larger."""

    @property
    def storage(self) -> Any:
        """The unsigned integer that holds one number."""
        return np.uint8 if self.exponent + self.mantissa < 8 else np.uint16

    @property
    def sign(self) -> int:
        return 1 << (self.exponent + self.mantissa)


FORMATS: Final = {
    "bf16": Format(8, 7, infinite=True, saturates=False),
    "fp8e4nv": Format(4, 3, infinite=False, saturates=True),
    "fp8e5": Format(5, 2, infinite=True, saturates=True),
}
"""Formats by Triton's names. The other fp8 formats are AMD's and those that Triton has no instruction for."""
TF32_MASK: Final = np.uint32(0xFFFFE000)
"""Bits of a float32 that a tensor core reads of an operand in TF32."""
F32_SMALLEST_NORMAL: Final = np.float32(2.0**-126)


def decode(bits: Array, form: Format) -> Array:
    """Numbers of the format as float32, exactly."""
    if form.exponent == 8:  # bfloat16 is the upper half of a float32
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return _values(form)[bits]


def encode(numbers: Array, form: Format, to_zero: bool = False) -> Array:
    """Bits of the numbers of the format that are nearest, ties to even, or next towards zero.

    ``numbers``: floats or integers, rounded once; of 64-bit integers what float64 holds of them.
    """
    if form.exponent == 8 and numbers.dtype == np.float32 and not to_zero:
        return _upper_half(numbers)
    finite = _finite_values(form)
    with np.errstate(invalid="ignore"):
        wide = numbers.astype(np.float64)
        size, is_nan = np.abs(wide), np.isnan(wide)
        low = np.clip(np.searchsorted(finite, size, side="right") - 1, 0, len(finite) - 2)
        below, above = size - finite[low], finite[low + 1] - size
        up = (above < below) | ((above == below) & (low % 2 == 1))
    code = low if to_zero else low + up
    largest = len(finite) - 2
    # Towards zero, only infinity itself is infinite.
    too_large = np.isinf(size) | (code > largest)
    code = np.where(too_large, largest + (form.infinite and not form.saturates), code)
    code = np.where(is_nan, form.sign - 1, code)
    return np.where(np.signbit(wide) & ~is_nan, code + form.sign, code).astype(form.storage)


def _upper_half(numbers: Array) -> Array:
    """Float32 numbers rounded to bfloat16, the upper half of their bits."""
    bits = np.ascontiguousarray(numbers).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = ((bits + odd + np.uint32(0x7FFF)) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(numbers), np.uint16(0x7FFF), rounded).reshape(numbers.shape)


def round_float(numbers: Array, target: Any, to_zero: bool) -> Array:
    """Floats as another of numpy's floating types, to nearest or towards zero."""
    with np.errstate(over="ignore"):
        nearest = numbers.astype(target)
    if not to_zero:
        return nearest
    too_far = np.abs(nearest.astype(np.float64)) > np.abs(numbers.astype(np.float64))
    inward = np.nextafter(nearest, np.zeros_like(nearest))
    return np.where(too_far, inward, nearest)


def to_integer(numbers: Array, target: Any) -> Array:
    """Floats as integers towards zero as ``cvt.rzi`` does: what is too large becomes the largest or smallest.

    A byte comes from a conversion to 16 bits. NaN is 0, or where either side has 64 bits the top bit alone.
    """
    target = np.dtype(target)
    width = np.dtype(f"{target.kind}{max(target.itemsize, 2)}")
    info = np.iinfo(width)
    whole = np.trunc(numbers.astype(np.float64))
    with np.errstate(invalid="ignore"):
        found = whole.astype(width)
    found = np.where(whole >= float(info.max), info.max, found)
    found = np.where(whole <= float(info.min), info.min, found)
    top = np.array(1 << (8 * width.itemsize - 1), np.uint64).astype(f"u{width.itemsize}").view(width)
    is_wide = width.itemsize == 8 or numbers.dtype.itemsize == 8
    return np.where(np.isnan(numbers), top if is_wide else width.type(0), found).astype(width).astype(target)


def truncated_to_tf32(numbers: Array) -> Array:
    """What a tensor core reads of float32 operands: 10 bits of the mantissa."""
    return (np.ascontiguousarray(numbers).view(np.uint32) & TF32_MASK).view(np.float32)


def flushed(numbers: Array) -> Array:
    """Float32 numbers below the smallest normal one as zeros of their sign."""
    if numbers.dtype != np.float32:
        return numbers
    return np.where(np.abs(numbers) < F32_SMALLEST_NORMAL, np.copysign(np.float32(0), numbers), numbers)


@functools.cache
def _values(form: Format) -> Array:
    """The number of each code, as float32."""
    codes = np.arange(2 * form.sign)
    exponents = (codes & (form.sign - 1)) >> form.mantissa
    mantissas = codes & ((1 << form.mantissa) - 1)
    bias = (1 << (form.exponent - 1)) - 1
    scale = np.maximum(exponents, 1) - bias - form.mantissa
    sizes = np.ldexp((mantissas + np.where(exponents > 0, 1 << form.mantissa, 0)).astype(np.float64), scale)
    if form.infinite:
        last = exponents == (1 << form.exponent) - 1
        sizes = np.where(last, np.where(mantissas == 0, np.inf, np.nan), sizes)
    else:
        sizes = np.where((codes & (form.sign - 1)) == form.sign - 1, np.nan, sizes)
    return np.where(codes & form.sign, -sizes, sizes).astype(np.float32)


@functools.cache
def _finite_values(form: Format) -> Array:
    """Finite numbers that are not negative, in their codes' order, as float64, and the one that would be next."""
    sizes = _values(form)[: form.sign].astype(np.float64)
    sizes = sizes[np.isfinite(sizes)]
    return np.append(sizes, 2 * sizes[-1] - sizes[-2])
