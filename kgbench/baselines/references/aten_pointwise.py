"""References of ATen's pointwise operators: the function in float64, and the scale of honest rounding error.

Integers and truth values become float32 first, as ATen's own rule is, so that large ones are rounded before the
function sees them. The scale is that of ``x f'(x)``, what an error of rounding in ``x`` or in an intermediate result
amounts to, or less where every usual way to compute the function does better.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.aten import SMALLEST_NORMAL_SCALE, finite

LARGEST = torch.finfo(torch.float32).max
SATURATED = 20.0
"""Argument beyond which exp(-x) does not count beside 1: exp(-20) is a thirtieth of float32's unit roundoff."""


def wide(self: torch.Tensor) -> torch.Tensor:
    """float64 or complex128, of integers by way of float32."""
    if self.is_floating_point() or self.is_complex():
        return self
    return self.to(torch.float32).to(torch.float64)


def scaled(value: torch.Tensor, scale: torch.Tensor) -> Expected:
    """With the floor that covers a result flushed to zero where it is denormal."""
    return Expected(value, finite(scale).clamp_min(SMALLEST_NORMAL_SCALE))


def rounded_power(x: torch.Tensor) -> torch.Tensor:
    """1 + |x|, the relative error that rounding x brings to exp(-x), as long as 1 + exp(-x) is not 1 in any case."""
    return 1 + (x if x.is_complex() else x.clamp(max=SATURATED)).abs()


def acosh(self: torch.Tensor) -> Expected:
    """log(x + sqrt(x² - 1)); scale x / sqrt(x² - 1)."""
    x = wide(self)
    return scaled(torch.acosh(x), (x / (torch.sqrt(x - 1) * torch.sqrt(x + 1))).abs())


def asin(self: torch.Tensor) -> Expected:
    """Scale x / sqrt(1 - x²)."""
    x = wide(self)
    return scaled(torch.asin(x), (x / torch.sqrt((1 - x) * (1 + x))).abs())


def cos(self: torch.Tensor) -> Expected:
    """Scale 1 of real numbers, since arguments of any size are reduced without loss; of complex ones |x sin x|."""
    x = wide(self)
    return scaled(torch.cos(x), (x * torch.sin(x)).abs() if x.is_complex() else torch.ones_like(x))


def sin(self: torch.Tensor) -> Expected:
    """Scale min(|x|, 1) of real numbers, so that small results count relatively; of complex ones |x cos x|."""
    x = wide(self)
    return scaled(torch.sin(x), (x * torch.cos(x)).abs() if x.is_complex() else x.abs().clamp_max(1))


def cosh(self: torch.Tensor) -> Expected:
    """Scale x sinh x: what rounding of x does to exp(x)."""
    x = wide(self)
    return scaled(torch.cosh(x), (x * torch.sinh(x)).abs())


def erfc(self: torch.Tensor) -> Expected:
    """Scale 2 / sqrt(pi) x exp(-x²), 2x² times erfc where x is large: what rounding of x² does to its exponential."""
    x = wide(self)
    return scaled(torch.erfc(x), 2 / math.sqrt(math.pi) * x.abs() * torch.exp(-x * x))


def hardsigmoid(self: torch.Tensor) -> Expected:
    """min(max(x + 3, 0), 6) / 6; scale (|x| + 3) / 6 between the ends, since x + 3 cancels."""
    inside = self.abs() < 3
    value = torch.where(torch.isnan(self), self, (self + 3).clamp(0, 6) / 6)
    return Expected(value, torch.where(inside, (self.abs() + 3) / 6, value.abs()))


def i0(self: torch.Tensor) -> Expected:
    """Scale x I1(x), which is that of exp(|x|) where x is large. Infinite at infinities, or as ATen's NaN."""
    x = wide(self)
    aten = torch.i0(x)
    value = torch.where(torch.isinf(x), torch.inf, aten)
    return replace(scaled(value, value * (1 + x.abs())), also=Expected(aten))


def log10(self: torch.Tensor) -> Expected:
    """Scale 1 / log(10) near 1, so that a product with a rounded logarithm is correct."""
    x = wide(self)
    value = torch.log10(x)
    return scaled(value, torch.full_like(x.abs(), 1 / math.log(10)))


def logit(self: torch.Tensor, eps: float | None = None) -> Expected:
    """log(z / (1 - z)), z = self limited to [eps, 1 - eps]; scale 1 / (1 - z), what rounding of 1 - z does."""
    x = wide(self)
    if eps is not None and eps >= 0:
        x = torch.where(x < eps, torch.full_like(x, eps), torch.where(x > 1 - eps, torch.full_like(x, 1 - eps), x))
    return scaled(torch.log(x / (1 - x)), (1 / (1 - x)).abs())


def mish(self: torch.Tensor) -> Expected:
    """x tanh(log(1 + exp(x))); scale value * (1 + |x|), of large x no more."""
    value = self * torch.tanh(torch.log1p(torch.exp(self)))
    return scaled(value, value.abs() * rounded_power(self))


def polygamma(n: int, self: torch.Tensor) -> Expected:
    """The n-th derivative of digamma, (-1)^(n+1) n! zeta(n + 1, x); scale x times the next derivative."""
    x = wide(self)
    value = _polygamma(n, x)
    return scaled(value, (x * _polygamma(n + 1, x)).abs())


def _polygamma(n: int, x: torch.Tensor) -> torch.Tensor:
    """Not by torch.polygamma: for n = 1 that is right to 1e-8 only. Negative x reflected there, summed beyond."""
    if n == 0:
        return torch.digamma(x)
    if n == 1:
        below = (math.pi / torch.sin(math.pi * (x - x.round()))) ** 2 - torch.special.zeta(2.0, 1 - x)
        return torch.where(x < 0, below, torch.special.zeta(2.0, x))
    factor = math.factorial(n) * (-1) ** (n + 1)
    value: torch.Tensor = factor * torch.special.zeta(float(n + 1), x)
    return value


def prelu(self: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """x where positive, else weight * x; one weight for all or one per index of dimension 1."""
    per_channel = weight.reshape([-1] + [1] * (self.dim() - 2)) if weight.numel() > 1 else weight.reshape([])
    return torch.where(self > 0, self, per_channel * self)


def rsqrt(self: torch.Tensor) -> Expected:
    """1 / sqrt(x)."""
    return Expected(1 / torch.sqrt(wide(self)))


def silu(self: torch.Tensor) -> Expected:
    """x / (1 + exp(-x)); scale value * (1 + |x|), of large x no more; complex: times (1 + |exp(-x)|) / |1 + exp(-x)|.

    That is the sum's condition: 1 for real numbers, and large near the poles at odd multiples of pi i. Where exp(-x) of
    a complex number overflows in float32 the result is nearly 0, or NaN as ATen's.
    """
    power = torch.exp(-self)
    value = self / (1 + power)
    scale = value.abs() * rounded_power(self)
    if not self.is_complex():
        return scaled(value, scale)
    overflows = torch.isfinite(self) & ~(power.abs() <= LARGEST)
    value = torch.where(overflows & value.isnan(), 0.0, value)
    nearly = scaled(value, scale * (1 + power.abs()) / (1 + power).abs())
    return replace(nearly, also=Expected(torch.where(overflows, complex(math.nan, math.nan), value), nearly.magnitude))


def special_entr(self: torch.Tensor) -> Expected:
    """-x log(x), 0 for 0, -inf below; scale x near 1, where the logarithm is 0."""
    x = wide(self)
    return scaled(torch.special.entr(x), x.abs())


def square(self: torch.Tensor) -> Expected:
    """x * x; scale 1.5 |value| of complex numbers: (a - b) (a + b) is three roundings where real squares have one."""
    value = torch.square(self)
    return Expected(value, finite(1.5 * value.abs())) if value.is_complex() else Expected(value)


def exp_minus_abs(tensors: dict[str, torch.Tensor], variables: dict[str, Any], generator: torch.Generator) -> None:
    """Finish log_sigmoid_backward's inputs: the buffer that the forward pass leaves on the CPU."""
    x, buffer = tensors["self"], tensors["buffer"]
    for dimension, step in enumerate(buffer.stride()):
        if step == 0:
            # All its elements are one: so are those of x in a call that makes sense.
            x, buffer = x.narrow(dimension, 0, 1), buffer.narrow(dimension, 0, 1)
    buffer.copy_(torch.exp(-x.to(torch.float64).abs()))


def log_sigmoid_backward(grad_output: torch.Tensor, self: torch.Tensor, buffer: torch.Tensor) -> Expected:
    """grad sigmoid(-x); scale value * (1 + |x|), of very negative x no more."""
    value = grad_output * torch.exp(torch.nn.functional.logsigmoid(-self))
    return scaled(value, value.abs() * rounded_power(-self))


def mish_backward(grad_output: torch.Tensor, self: torch.Tensor) -> Expected:
    """grad (t + x sigmoid(x) (1 - t²)), t = tanh(log(1 + exp(x))); scale: both terms, each * (1 + |x|).

    Of large x, too: a tanh off by a unit near 1 is multiplied by x.
    """
    t = torch.tanh(torch.log1p(torch.exp(self)))
    term = self * torch.sigmoid(self) * (1 - t * t)
    scale = grad_output.abs() * (t.abs() + term.abs()) * (1 + self.abs())
    # The sigmoid is flushed to zero before it is multiplied.
    return scaled(grad_output * (t + term), scale + SMALLEST_NORMAL_SCALE / 16 * (grad_output * self).abs())


def rrelu_with_noise_backward(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    noise: torch.Tensor,
    lower: Any,
    upper: Any,
    training: bool,
    self_is_result: bool,
) -> torch.Tensor:
    """grad * noise in training, else grad * the mean slope where self is not positive."""
    if training:
        return grad_output * noise
    return torch.where(self > 0, grad_output, grad_output * ((lower + upper) / 2))


def softplus_backward(grad_output: torch.Tensor, self: torch.Tensor, beta: Any, threshold: Any) -> Expected:
    """grad sigmoid(beta x), grad itself where beta x > threshold; scale value * (1 + |beta x|), not of large ones."""
    scaled_x = self * beta
    value = torch.where(scaled_x > threshold, grad_output, grad_output / (1 + torch.exp(-scaled_x)))
    return scaled(value, value.abs() * rounded_power(scaled_x))


def smooth_l1_loss_backward(
    grad_output: torch.Tensor, self: torch.Tensor, target: torch.Tensor, reduction: int, beta: float
) -> Expected:
    """norm * grad * (x / beta within ±beta, else its sign), x = self - target, norm = 1 / count for the mean.

    The floor of the scale, 1e-5 grad / beta, is for norm * x in float16, where it may be denormal.
    """
    x = self - target
    count = x.numel() if reduction == 1 else 1
    slope = torch.where(x.abs() < beta, x / (beta or 1.0), torch.where(x <= -beta, -1.0, 1.0))
    slope = torch.where(torch.isnan(x), x, slope)
    value = grad_output * slope / max(count, 1)
    return Expected(value, torch.maximum(value.abs(), grad_output.abs() * (1e-5 / (beta or 1.0))))
