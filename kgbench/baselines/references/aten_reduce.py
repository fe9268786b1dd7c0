"""References of ATen problems: operators of two operands, reductions, losses and products of matrices.

Each function takes its entry's parameters by name; floating tensors arrive as float64, integers as they are. Operators
that torch itself computes right in float64 have an expression in their problem file instead.
"""

from __future__ import annotations

import math
from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.aten import (
    SMALLEST_NORMAL_SCALE,
    by_parts,
    chained,
    finite,
    is_complex,
    is_exact,
    softmax,
    widened,
)

ROUNDED_TERMS = 64
"""Number of terms from which a mean or sum of rounded 16-bit terms is as good as one of exact terms."""
SUM_ULPS = 16
"""Error of a float32 sum of ROUNDED_TERMS terms, in errors of one operation."""
Dims = list[int] | tuple[int, ...] | None
"""Dimensions to reduce; None and an empty list both mean all."""
NEAR_WHOLE = 2.0**-22
"""Relative distance from a whole number within which a quotient in float32 may lie on either side."""
NEAR_WHOLE_16_BITS = ((torch.bfloat16, 2.0**-7), (torch.float16, 2.0**-10))
"""NEAR_WHOLE for 16-bit operands: ATen may round their quotient to 16 bits before it rounds it to a whole number."""
ONE_IN_FLOAT32 = 2.0**22
"""Error scale of which a float32 limit of two units in the last place is 1."""
LARGEST = torch.finfo(torch.float32).max
"""The largest number of float32."""
LEAST = 2.0**-150
"""Numbers below it are 0 in float32."""
MEAN, TOTAL = 1, 2
"""Values of the argument that ATen calls ``reduction``; 0 is none."""


def sum(self: torch.Tensor, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Expected:
    """Along ``dim``, or all where that is None or empty; the error scale is the root of the sum of squares."""
    wanted = getattr(torch, dtype) if isinstance(dtype, str) else dtype
    if is_exact(self) and (wanted is None or not wanted.is_floating_point):
        return Expected(torch.sum(self, dim or None, keepdim, dtype=wanted))
    terms = widened(self)
    return Expected(torch.sum(terms, dim or None, keepdim), root_of_squares(terms, dim, keepdim))


def root_of_squares(terms: torch.Tensor, dim: Dims, keepdim: bool) -> torch.Tensor:
    """The scale by which a sum of ``terms`` may be off, with 0 where it is not finite."""
    return finite(torch.sum(terms.abs().square(), dim or None, keepdim).sqrt())


def huber_loss(self: torch.Tensor, target: torch.Tensor, reduction: int = MEAN, delta: float = 1.0) -> Expected:
    """Square within ``delta``, linear beyond."""
    distance = (self - target).abs()
    losses = torch.where(distance <= delta, distance.square() / 2, delta * (distance - delta / 2))
    return reduced(losses, reduction, (self, target))


def reduced(
    losses: torch.Tensor, reduction: int, given: tuple[torch.Tensor, ...], scale: torch.Tensor | None = None
) -> Expected:
    """Losses as they are, their mean or their sum. ``scale``: what an element's own error is a multiple of.

    Beside the limit's 6 units of roundoff the sum may be off by ``chained``; of a few losses of ``given`` numbers of 16
    bits it is not, since the units are then theirs.
    """
    scale = losses.abs() if scale is None else scale
    if reduction not in (MEAN, TOTAL):
        return Expected(losses, finite(scale))
    count = losses.numel()
    factor = 1 + chained(count) / 6
    if count >= ROUNDED_TERMS:
        factor = max(SUM_ULPS, factor)
    elif _near_whole(*given) != NEAR_WHOLE:
        factor = 1
    value = losses.mean() if reduction == MEAN else losses.sum()
    return Expected(value, finite(factor * scale.sum() / (count if reduction == MEAN and count else 1)))


def mean(self: torch.Tensor, dim: Dims = None, keepdim: bool = False, dtype: Any = None) -> Expected:
    """As ``sum``, divided by the number of terms."""
    terms = widened(self)
    value = torch.mean(terms, dim or None, keepdim)
    return Expected(value, root_of_squares(terms, dim, keepdim) * value.numel() / max(1, terms.numel()))


def mul(self: torch.Tensor, other: Any) -> Expected:
    """self * other; exact (and wrapping) where everything is an integer; a real factor may scale each part alone."""
    if is_exact(self, other):
        return Expected(torch.mul(self, other))
    left, right = widened(self), widened(other)
    parts = by_parts(left, right)
    return Expected(torch.mul(left, right), also=None if parts is None else Expected(parts))


ROUNDED_FIRST = (torch.float32, torch.float16, torch.bfloat16)
"""Dtypes to which a number may be rounded before it is compared with elements of them."""


def compared(operator: Any, self: torch.Tensor, other: Any) -> Expected:
    """Element by element; a number, or a tensor without dimensions, may be rounded to the elements' dtype first."""
    value = operator(self, other)
    number = other.item() if isinstance(other, torch.Tensor) and not other.dim() else other
    if not isinstance(number, int | float) or not self.dim() or not self.is_floating_point():
        return Expected(value)
    also = value
    for dtype in ROUNDED_FIRST:
        if _holds(dtype, self):
            rounded = operator(self, float(torch.tensor(float(number), dtype=torch.float64).to(dtype)))
            also = torch.where(rounded != value, rounded, also)
    return Expected(value, also=Expected(also))


def eq(self: torch.Tensor, other: Any) -> Expected:
    """self == other."""
    return compared(torch.eq, self, other)


def gt(self: torch.Tensor, other: Any) -> Expected:
    """self > other."""
    return compared(torch.gt, self, other)


def le(self: torch.Tensor, other: Any) -> Expected:
    """self <= other."""
    return compared(torch.le, self, other)


SMALLEST_NORMAL = 2.0**-126
"""The smallest normal float32."""


def div(self: torch.Tensor, other: Any, rounding_mode: str | None = None) -> Expected:
    """self / other, which may be rounded towards zero (``trunc``) or down (``floor``); integers exactly.

    The scale of a quotient is |value|, a quarter more for a number like 0.3, which is itself rounded first: one of four
    units of roundoff. Of complex quotients it is 2 |value|: the product with the conjugate may be off by sqrt(5) units
    of roundoff, the modulus' square by 2, a fast division by 4.
    """
    if rounding_mode is None:
        above, below = widened(self), widened(other)
        value = torch.div(above, below)
        factor = 2.0 if value.is_complex() else 1.25 if _is_rounded_first(other) else 1.0
        scale, parts = finite(factor * value.abs()), None
        if is_complex(self) and not is_complex(other):
            parts = Expected(torch.complex(above.real / below, above.imag / below), scale)
        return Expected(value, scale, parts)
    if is_exact(self, other):
        return Expected(torch.div(self, other, rounding_mode=rounding_mode))
    above, below = widened(self), widened(other)
    value = torch.div(above, below, rounding_mode=rounding_mode)
    quotient = above / below
    nearest = quotient.round()
    # A number like 0.3 is itself rounded first; of whole numbers the quotient is exact.
    certain = (quotient == nearest) if isinstance(below, torch.Tensor) or below % 1 == 0 else (quotient == 0)
    close = ~certain & ((quotient - nearest).abs() <= _near_whole(above, below) * quotient.abs())
    # One number up or down: which side of a whole number the quotient lies on, the arithmetic cannot tell.
    scale = finite(torch.where(close, ONE_IN_FLOAT32 + value.abs(), value.abs()))
    # A quotient that float32 holds as a subnormal number may be zero before it is rounded down.
    small = (quotient.abs() < SMALLEST_NORMAL) & (quotient != 0) & _in_float32(above, below)
    return Expected(value, scale, also=Expected(torch.where(small, 0.0, value), scale))


def _in_float32(*operands: Any) -> bool:
    """Whether float32 holds all tensors among the operands, so that they may have been such."""
    tensors = [torch.nan_to_num(each) for each in operands if isinstance(each, torch.Tensor)]
    return all(torch.equal(each.to(torch.float32).to(each.dtype), each) for each in tensors)


def _is_rounded_first(operand: Any) -> bool:
    """Whether it is one number for all elements that float32 does not hold."""
    if isinstance(operand, torch.Tensor):
        return operand.dim() == 0 and _is_rounded_first(operand.item())
    return isinstance(operand, float) and math.isfinite(operand) and float(torch.tensor(operand)) != operand


def _near_whole(*operands: Any) -> float:
    """By the least precise dtype that holds all tensors among the operands."""
    tensors = [each for each in operands if isinstance(each, torch.Tensor)]
    for dtype, distance in NEAR_WHOLE_16_BITS:
        if all(_holds(dtype, each) for each in tensors):
            return distance
    return NEAR_WHOLE


def _holds(dtype: torch.dtype, tensor: torch.Tensor) -> bool:
    """Whether each finite element is a number of the dtype."""
    return torch.equal(torch.nan_to_num(tensor.to(dtype).to(tensor.dtype)), torch.nan_to_num(tensor))


def floor_divide(self: torch.Tensor, other: Any) -> Expected:
    """self / other rounded down."""
    return div(self, other, "floor")


def logaddexp2(self: torch.Tensor, other: torch.Tensor) -> Expected:
    """log2(2^self + 2^other); the error scale is that of the larger one and of the logarithm of up to 2 added to it."""
    left, right = torch.broadcast_tensors(self, other)  # type: ignore[no-untyped-call]
    return Expected(torch.logaddexp2(left, right), finite(torch.maximum(left.abs(), right.abs()) + 1))


def pow(self: Any, exponent: Any) -> Expected:
    """self to the power of exponent; exact (and wrapping) where everything is an integer.

    The error scale is value * (1 + |exponent * ln self|): exp2(exponent * log2(self)) is an honest way. Right are C's
    edges, of two tensors, and ATen's, which takes the square root for a number 0.5 and one over it for -0.5.
    """
    if is_exact(self, exponent):
        return Expected(torch.pow(self, exponent))
    aten = torch.pow(widened(self), widened(exponent))
    base, power = (torch.as_tensor(widened(each), dtype=aten.dtype, device=aten.device) for each in (self, exponent))
    # A tensor without dimensions would count as a number.
    shape = aten.shape or (1,)
    value = torch.pow(base.expand(shape).contiguous(), power.expand(shape).contiguous()).reshape(aten.shape)
    logarithm = base.abs().log() * power
    scale = finite(value.abs() * (1 + finite(logarithm.abs())))
    return Expected(value, scale, also=Expected(aten, scale))


def binary_cross_entropy_with_logits(
    self: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    pos_weight: torch.Tensor | None = None,
    reduction: int = MEAN,
) -> Expected:
    """weight * ((1 - target) * x + (1 + (pos_weight - 1) * target) * log(1 + exp(-x))) without overflow.

    Of the limit's six units of roundoff weight needs a seventh, and the three operations with pos_weight three more.
    """
    straight = (1 - target) * self
    softened, error = softplus(-self)
    bend = torch.zeros_like(target) if pos_weight is None else (pos_weight - 1) * target
    outer = torch.ones_like(target) if weight is None else weight
    scale = straight.abs() + (1 + bend.abs()) * error * (1 if pos_weight is None else 9 / 6)
    scale = scale if weight is None else scale * (7 / 6)
    return reduced((straight + (1 + bend) * softened) * outer, reduction, (self, target), scale * outer.abs())


def margin_ranking_loss(
    input1: torch.Tensor, input2: torch.Tensor, target: torch.Tensor, margin: float = 0.0, reduction: int = MEAN
) -> Expected:
    """max(0, -target * (input1 - input2) + margin); beside the step the scale is that of what is subtracted."""
    inner = -target * (input1 - input2) + margin
    scale = (target * (input1 - input2)).abs() + abs(margin)
    losses = inner.clamp_min(0)
    return reduced(losses, reduction, (input1, input2), scale.expand(losses.shape))


def soft_margin_loss(self: torch.Tensor, target: torch.Tensor, reduction: int = MEAN) -> Expected:
    """log(1 + exp(-target * self)) without overflow."""
    losses, error = softplus(-target * self)
    # 1 + exp(z) may be rounded before the logarithm is taken.
    return reduced(losses, reduction, (self, target), error + torch.exp(-target * self).clamp(max=1))


def softplus(inner: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """log(1 + exp(inner)) and its error scale: rounding of a large number is what exp amplifies."""
    tail, linear = torch.log1p(torch.exp(-inner.abs())), inner.clamp_min(0)
    return tail + linear, (tail * (1 + finite(inner.abs())) + linear).clamp_min(SMALLEST_NORMAL_SCALE)


def pairwise_distance(
    x1: torch.Tensor, x2: torch.Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False
) -> Expected:
    """The p-norm of x1 - x2 + eps along the last dimension.

    Beside the limit's 24 units of roundoff the sum may be off by ``chained``, of which the root leaves a p-th. Where
    all terms are alike, as of x from itself, each is rounded the same way. Terms below float32's normal numbers may be
    lost. A term is what the roundings of x1 - x2, of eps and of their sum leave, which may cancel.
    """
    apart = widened(x1) - widened(x2)
    difference = apart + eps
    count, sizes = difference.shape[-1], difference.abs()
    if not count or not 0 < p < math.inf:
        value = torch.linalg.vector_norm(difference, p, -1, keepdim=keepdim)
        return Expected(value, finite(value))
    total = sizes.pow(p).sum(-1, keepdim)
    value = total.pow(1 / p)
    alike = sizes.amax(-1, keepdim) <= 1.001 * sizes.amin(-1, keepdim)
    chain = torch.where(alike, max(count, chained(count)), chained(count)) / p
    lost = (count * 2.0**-126) ** (1 / p)
    rounded = torch.linalg.vector_norm(apart.abs() + abs(eps), p, -1, keepdim=keepdim)
    scale = finite(value * (1 + chain / 24) + lost * 2.0**24 / 24 + rounded / 24)
    return Expected(value, scale, Expected(torch.where(total > LARGEST, math.inf, value), scale))


def renorm(self: torch.Tensor, p: float, dim: int, maxnorm: float) -> Expected:
    """Slices scaled down to a largest norm. Of one whose sum of |x|^p leaves float32 the norm may be infinite, or 0.

    A root as exp(log(sum) / p) is off by the roundoff of its exponent, which is the norm's logarithm.
    """
    value = torch.renorm(self, p, dim, maxnorm)
    if not 0 < p < math.inf or not self.numel():
        return Expected(value)
    others = [at for at in range(self.dim()) if at != dim % self.dim()]
    norms = torch.linalg.vector_norm(self, p, others, keepdim=True)
    also = torch.where(norms < LEAST ** (1 / p), self, value)
    beyond = (norms > LARGEST ** (1 / p)) & torch.isfinite(norms)
    exponent = 0.0 if p in (1, 2) else norms.log().abs()
    scale = finite(value.abs() * (1 + exponent / 8))
    return Expected(value, scale, Expected(torch.where(beyond, torch.zeros_like(self), also), scale))


def bmm(self: torch.Tensor, mat2: torch.Tensor) -> Expected:
    """A matrix product for each number in the first dimension."""
    return product(self, mat2)


def matmul(self: torch.Tensor, other: torch.Tensor) -> Expected:
    """Products of vectors, matrices and batches of them, by their numbers of dimensions."""
    return product(self, other)


def linear(input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> Expected:
    """input @ weight.T + bias."""
    expected = product(input, weight.t())
    if bias is None:
        return expected
    assert expected.magnitude is not None
    value = expected.value + bias
    return Expected(value, finite(torch.hypot(expected.magnitude, bias.abs())))


def product(left: torch.Tensor, right: torch.Tensor) -> Expected:
    """torch.matmul; the error scale is the root of the sum of the squares of all products.

    Each side is divided by its largest number first: squares of float64 numbers of 1e100 are infinite.
    """
    sizes = [side.abs() for side in (left, right)]
    most = [_largest(size) for size in sizes]
    squares = torch.matmul(*((size / largest).square() for size, largest in zip(sizes, most, strict=True)))
    return Expected(torch.matmul(left, right), finite(squares.sqrt() * most[0] * most[1]))


def _largest(sizes: torch.Tensor) -> torch.Tensor:
    """The largest finite number, 1 where there is none but zeros; no infinity, which would make others zero."""
    largest = torch.where(torch.isfinite(sizes), sizes, 0.0).amax() if sizes.numel() else sizes.new_zeros(())
    return torch.where(largest == 0, 1.0, largest)


def _softmax(self: torch.Tensor, dim: int, half_to_float: bool) -> Expected:
    """As ``softmax``; ``half_to_float`` is about the result's dtype alone."""
    return softmax(self, dim)
