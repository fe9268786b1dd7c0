"""References, prepared inputs and fallbacks of vLLM problems about rows: norms, quantisation, permutations, penalties.

The reference functions take their entry's parameters by name, floating tensors as float64. ``prepare_*`` finish drawn
inputs in place. ``*_plain`` have the entries' own signatures and dtypes and are timed where vLLM does not run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.vllm import FP8_LARGEST, drawn_as, mean_off, norm_scale

Expectations = dict[str, Expected]

SMALLEST_SCALES: Final = {"int8": 2.0**-23, "fp8": 1 / (FP8_LARGEST * 512)}
"""What vLLM's fused norms and its fp8 scales per token never go below."""


# --- rows as they are ---


def fused_add_rms_norm(
    input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float
) -> Expectations:
    """residual += input; input = residual / sqrt(mean(residual²) + epsilon) * weight, in 8 units of roundoff."""
    total = input + residual
    value = normalised(total, epsilon) * weight
    return {"input": Expected(value, norm_scale(value, weight, input)), "residual": Expected(total)}


def fused_add_rms_norm_plain(input: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, epsilon: float) -> None:
    """``fused_add_rms_norm`` in float32, rounded once per output."""
    residual.add_(input)
    input.copy_(normalised(residual.float(), epsilon) * weight)


def normalised(rows: torch.Tensor, epsilon: float) -> torch.Tensor:
    return rows * torch.rsqrt(rows.square().mean(-1, keepdim=True) + epsilon)


def shuffle_rows(input_tensor: torch.Tensor, dst2src_map: torch.Tensor, **_: Any) -> Expectations:
    """output_tensor[i] = input_tensor[dst2src_map[i]]."""
    return {"output_tensor": Expected(input_tensor[dst2src_map.long()])}


def shuffle_rows_plain(input_tensor: torch.Tensor, dst2src_map: torch.Tensor, output_tensor: torch.Tensor) -> None:
    """``shuffle_rows`` by one gather."""
    torch.index_select(input_tensor, 0, dst2src_map, out=output_tensor)


def permute_cols(A: torch.Tensor, perm: torch.Tensor) -> torch.Tensor:
    """Column j of the result is column perm[j] of A."""
    return A[:, perm.long()]


def permute_cols_plain(A: torch.Tensor, perm: torch.Tensor) -> torch.Tensor:
    """``permute_cols`` by one gather."""
    return torch.index_select(A, 1, perm)


def apply_repetition_penalties(
    logits: torch.Tensor,
    prompt_mask: torch.Tensor,
    output_mask: torch.Tensor,
    repetition_penalties: torch.Tensor,
) -> Expectations:
    """Logits of tokens seen in prompt or output: divided by their row's penalty where positive, else multiplied."""
    penalty = repetition_penalties.unsqueeze(-1)
    penalised = torch.where(logits > 0, logits / penalty, logits * penalty)
    return {"logits": Expected(torch.where(prompt_mask | output_mask, penalised, logits))}


def apply_repetition_penalties_plain(
    logits: torch.Tensor,
    prompt_mask: torch.Tensor,
    output_mask: torch.Tensor,
    repetition_penalties: torch.Tensor,
) -> None:
    """``apply_repetition_penalties`` in the logits' dtype."""
    penalty = repetition_penalties.unsqueeze(-1)
    penalised = torch.where(logits > 0, logits / penalty, logits * penalty)
    logits.copy_(torch.where(prompt_mask | output_mask, penalised, logits))


def hadacore_transform(x: torch.Tensor, inplace: bool) -> Expected:
    """Rows times the Hadamard matrix of Sylvester's order, over the root of their length.

    Kernels round between the steps of the transform, and what they round there is about as large as the row's root mean
    square, or, where the row's weight gathers in few elements of the result, as large as those.
    """
    result = _hadamard(x)
    spread = x.square().mean(-1, keepdim=True).sqrt()
    return Expected(result, torch.maximum(spread, result.abs().amax(-1, keepdim=True) / 4).expand_as(x))


def hadacore_transform_plain(x: torch.Tensor, inplace: bool = True) -> torch.Tensor:
    """``hadacore_transform`` by butterflies in float32."""
    return x.copy_(_hadamard(x.float()))


def _hadamard(rows: torch.Tensor) -> torch.Tensor:
    size, half, mixed = rows.shape[-1], 1, rows
    while half < size:
        first, second = mixed.reshape(*rows.shape[:-1], -1, 2, half).unbind(-2)
        mixed = torch.stack((first + second, first - second), -2)
        half *= 2
    return mixed.reshape(rows.shape) / math.sqrt(size)


# --- codes ---


def convert_fp8_quantize(src_cache: torch.Tensor, scale: float, **_: Any) -> Expectations:
    """The real numbers src / scale of which the codes are made."""
    return {"dst_cache": Expected(src_cache / scale)}


def convert_fp8_dequantize(src_cache: torch.Tensor, scale: float, **_: Any) -> Expectations:
    """What the codes stand for, times scale."""
    return {"dst_cache": Expected(src_cache * scale)}


def convert_fp8_plain(dst_cache: torch.Tensor, src_cache: torch.Tensor, scale: float, kv_cache_dtype: str) -> None:
    """Both directions of ``convert_fp8`` in float32."""
    if dst_cache.dtype == torch.float8_e4m3fn:
        dst_cache.copy_((src_cache.float() / scale).clamp(-FP8_LARGEST, FP8_LARGEST))
    else:
        dst_cache.copy_(src_cache.float() * scale)


def prepare_codes(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Every fp8 code in turn, NaN among them, where the case's values are ``codes``."""
    if variables["values"] == "codes":
        codes = tensors["src_cache"].view(torch.uint8)
        codes.copy_((torch.arange(codes.numel(), device=codes.device) % 256).reshape(codes.shape))


def static_scaled_int8_quant(
    input: torch.Tensor, scale: torch.Tensor, azp: torch.Tensor | None, **_: Any
) -> Expectations:
    """The real numbers input / scale (+ azp)."""
    return {"result": _shifted(input / scale, azp)}


def static_scaled_int8_quant_plain(
    result: torch.Tensor, input: torch.Tensor, scale: torch.Tensor, azp: torch.Tensor | None
) -> None:
    """``static_scaled_int8_quant`` in float32."""
    result.copy_(_int8(input.float() / scale, azp))


def dynamic_scaled_int8_quant(input: torch.Tensor, azp: torch.Tensor | None, **_: Any) -> Expectations:
    """Each row's scale, its zero point where one is asked for, and the real numbers input / scale (+ azp)."""
    if azp is None:
        scale = input.abs().amax(-1, keepdim=True) / 127
        return {"result": Expected(_over(input, scale)), "scale": Expected(scale)}
    low, high = input.aminmax(dim=-1, keepdim=True)
    scale = (high - low) / 255
    zero = torch.round(-128 - low / scale)
    return {"result": _shifted(input / scale, zero), "scale": Expected(scale), "azp": Expected(zero.to(torch.int32))}


def dynamic_scaled_int8_quant_plain(
    result: torch.Tensor, input: torch.Tensor, scale: torch.Tensor, azp: torch.Tensor | None
) -> None:
    """``dynamic_scaled_int8_quant`` in float32."""
    rows = input.float()
    if azp is None:
        scale.copy_(rows.abs().amax(-1, keepdim=True) / 127)
        result.copy_(_int8(_over(rows, scale), None))
        return
    low, high = rows.aminmax(dim=-1, keepdim=True)
    scale.copy_((high - low) / 255)
    azp.copy_(torch.round(-128 - low / scale))
    result.copy_(_int8(rows / scale, azp))


def prepare_int8_rows(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Clear a row where the case says ``zero_row``; with zero points move the largest element of rows that would tie.

    A zero point that lies halfway between two integers, or nearly so, is one or the other by a rounding error, which
    grows with it: float32's roundings of the range, of the scale and of the quotient.
    """
    rows = tensors["input"]
    prepare_zero_row(tensors, variables, generator)
    for _ in range(24 if variables["asymmetric"] else 0):
        wide = rows.double()
        low, high = wide.aminmax(dim=-1, keepdim=True)
        zero = -128 - 255 * low / (high - low)
        tied = ((zero - zero.floor()) - 0.5).abs() < 2e-3 + zero.abs() * 2.0**-21
        moved = torch.where(tied, high + 0.0625 * (high - low), high)
        rows.scatter_(-1, wide.argmax(-1, keepdim=True), moved.to(rows.dtype))


def prepare_zero_row(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Clear the middle row of the input where the case says ``zero_row``."""
    if variables["zero_row"]:
        tensors["input"][tensors["input"].shape[0] // 2] = 0


def _over(rows: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """rows / scale; 0 where the scale is 0."""
    return torch.where(scale == 0, 0.0, rows / scale)


def _shifted(codes: torch.Tensor, zero: torch.Tensor | None) -> Expected:
    """Codes with a zero point; their error scale is that of both terms."""
    return Expected(codes) if zero is None else Expected(codes + zero, codes.abs() + zero.abs())


def _int8(codes: torch.Tensor, zero: torch.Tensor | None) -> torch.Tensor:
    rounded = codes.round() if zero is None else codes.round() + zero
    return rounded.clamp(-128, 127)


def static_scaled_fp8_quant(input: torch.Tensor, scale: torch.Tensor, **_: Any) -> Expectations:
    """The real numbers input / scale with one scale per tensor, row, column or rectangle."""
    return {"result": Expected(input / _spread(scale, input.shape))}


def static_scaled_fp8_quant_plain(result: torch.Tensor, input: torch.Tensor, scale: torch.Tensor) -> None:
    """``static_scaled_fp8_quant`` in float32."""
    result.copy_((input.float() / _spread(scale, input.shape)).clamp(-FP8_LARGEST, FP8_LARGEST))


def _spread(scale: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """A scale per element, from one per rectangle; scale: (1,) or (rows / height, columns / width)."""
    if scale.dim() == 1:
        return scale
    rows, columns = shape[0] // scale.shape[0], shape[1] // scale.shape[1]
    return scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)


def dynamic_scaled_fp8_quant(input: torch.Tensor, **_: Any) -> Expectations:
    """scale = max |input| / 448 and the real numbers input / scale."""
    scale = input.abs().amax() / FP8_LARGEST
    return {"result": Expected(input / scale), "scale": Expected(scale.reshape(1))}


def dynamic_scaled_fp8_quant_plain(result: torch.Tensor, input: torch.Tensor, scale: torch.Tensor) -> None:
    """``dynamic_scaled_fp8_quant`` in float32."""
    scale.copy_(input.abs().amax().float() / FP8_LARGEST)
    result.copy_((input.float() / scale).clamp(-FP8_LARGEST, FP8_LARGEST))


def dynamic_per_token_scaled_fp8_quant(input: torch.Tensor, scale_ub: torch.Tensor | None, **_: Any) -> Expectations:
    """Per row scale = max(min(max |row|, scale_ub) / 448, 1 / (448 * 512)), and the real numbers input / scale."""
    scale = _token_scale(input.abs().amax(-1, keepdim=True), scale_ub, "fp8")
    return {"result": Expected(input / scale), "scale": Expected(scale)}


def dynamic_per_token_scaled_fp8_quant_plain(
    result: torch.Tensor, input: torch.Tensor, scale: torch.Tensor, scale_ub: torch.Tensor | None
) -> None:
    """``dynamic_per_token_scaled_fp8_quant`` in float32."""
    scale.copy_(_token_scale(input.abs().amax(-1, keepdim=True).float(), scale_ub, "fp8"))
    result.copy_((input.float() / scale).clamp(-FP8_LARGEST, FP8_LARGEST))


def _token_scale(largest: torch.Tensor, scale_ub: torch.Tensor | None, codes: str) -> torch.Tensor:
    """The scale of what is at most ``largest``; codes: int8 or fp8."""
    if scale_ub is not None:
        largest = torch.minimum(largest, scale_ub)
    return (largest / (127 if codes == "int8" else FP8_LARGEST)).clamp(min=SMALLEST_SCALES[codes])


def rms_norm_dynamic_per_token_quant(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
    **_: Any,
) -> Expectations:
    """The norm of input (+ residual) times weight as codes, one scale per row."""
    return _norm_quant(result, input, weight, epsilon, scale_ub, residual, input.shape[-1])


def rms_norm_per_block_quant(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
    group_size: int,
    **_: Any,
) -> Expectations:
    """The norm of input (+ residual) times weight as codes, one scale per row and ``group_size`` columns."""
    return _norm_quant(result, input, weight, epsilon, scale_ub, residual, group_size)


def _norm_quant(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
    group: int,
) -> Expectations:
    total = input if residual is None else input + residual
    groups = in_parts(normalised(total, epsilon) * weight, group)
    # Of ten units of roundoff in a scale: the mean has 2, its root 4 on a GPU, two products one each, the quotient 2;
    # more where the mean is of many. Codes share most of them with their scale, which cancels, so that they have 6.
    # fp8 arrives as float64, int8 as it is.
    codes = "fp8" if result.is_floating_point() else "int8"
    scale = _token_scale(groups.abs().amax(-1), scale_ub, codes)
    real = groups / scale.unsqueeze(-1)
    # vLLM rounds the norm to the input's dtype, where float16 has denormals, whose rounding does not shrink with them.
    drawn = drawn_as(input)
    least = torch.finfo(drawn).tiny / scale.unsqueeze(-1)
    magnitude = torch.maximum(real.abs(), least).flatten(-2)
    expected = {
        "result": Expected(real.flatten(-2), magnitude),
        "scale": Expected(scale, scale * (10 + mean_off(input.shape[-1], drawn)) / 6),
    }
    return expected if residual is None else expected | {"residual": Expected(total)}


def rms_norm_dynamic_per_token_quant_plain(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
) -> None:
    """``rms_norm_dynamic_per_token_quant`` in float32."""
    _norm_quant_plain(result, input, weight, scale, epsilon, scale_ub, residual, input.shape[-1])


def rms_norm_per_block_quant_plain(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
    group_size: int,
    is_scale_transposed: bool,
) -> None:
    """``rms_norm_per_block_quant`` in float32."""
    _norm_quant_plain(result, input, weight, scale, epsilon, scale_ub, residual, group_size)


def _norm_quant_plain(
    result: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor,
    epsilon: float,
    scale_ub: torch.Tensor | None,
    residual: torch.Tensor | None,
    group: int,
) -> None:
    rows = input.float()
    if residual is not None:
        rows = rows + residual
        residual.copy_(rows)
    groups = in_parts(normalised(rows, epsilon) * weight, group)
    scale.copy_(_token_scale(groups.abs().amax(-1), scale_ub, "int8" if result.dtype == torch.int8 else "fp8"))
    codes = (groups / scale.unsqueeze(-1)).flatten(-2)
    result.copy_(_int8(codes, None) if result.dtype == torch.int8 else codes.clamp(-FP8_LARGEST, FP8_LARGEST))


def in_parts(rows: torch.Tensor, size: int) -> torch.Tensor:
    """The last dimension as (parts, size)."""
    return rows.reshape(*rows.shape[:-1], -1, size)
