"""References of vLLM's products with quantised weights (AWQ, GPTQ, CUTLASS, AllSpark), their inputs' structure, and
plain versions.

The reference functions take their entry's parameters by name, floating tensors as float64. ``prepare_*`` finish drawn
inputs in place. ``*_plain`` have the entries' own signatures and dtypes and are timed where vLLM does not run.

A packed weight of random bits is a packed matrix of random codes, since every format here is a bijection. Only what has
structure is prepared: permutations, group indices, scales within blocks of bytes, 2:4 metadata, padding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.packing import allspark, awq, gptq
from kgbench.baselines.references.vllm import FP8_LARGEST

Tensors = Mapping[str, torch.Tensor]
Variables = Mapping[str, Any]


def product_of(a: torch.Tensor, b: torch.Tensor) -> Expected:
    """a @ b, with the root of the sum of the squares of an element's products as its scale."""
    return Expected(a @ b, (a.square() @ b.square()).sqrt())


STEPS: Final = 1024
"""Number of products up to which coarse sums have a constant limit; beyond it grows with the root of the number."""


def coarse_scale(scale: torch.Tensor, length: int, steps: int = STEPS) -> torch.Tensor:
    """The scale for sums of ``length`` products that are kept in float16, or in the 14 bits of Hopper's float8 units.

    Every step cuts off something in proportion to the sum, which grows with the root of the number of steps, as what
    they cut off does together: relative to the root of the sum of squares the error grows with that root, too.
    Simulated, of ulps 16, the largest of 800 000 sums of 14336 products: 0.53 where the sum is rounded to float16 after
    every 16 products, 0.44 where sum and products are cut to 14 bits, counted from the largest, at every 32.
    """
    return scale * max(1.0, math.sqrt(length / steps))


# --- AWQ ---


def awq_gemm(
    _in_feats: torch.Tensor, _kernel: torch.Tensor, _scaling_factors: torch.Tensor, _zeros: torch.Tensor, **_: Any
) -> Expected:
    """Input times the unpacked matrix."""
    return product_of(_in_feats, awq.weights(_kernel, _scaling_factors, _zeros))


def awq_gemm_plain(
    _in_feats: torch.Tensor,
    _kernel: torch.Tensor,
    _scaling_factors: torch.Tensor,
    _zeros: torch.Tensor,
    split_k_iters: int,
) -> torch.Tensor:
    """``awq_gemm`` in the scales' dtype."""
    return _in_feats @ awq.weights(_kernel, _scaling_factors, _zeros)


# --- GPTQ ---


def gptq_shuffle(q_weight: torch.Tensor, q_perm: torch.Tensor, bit: int) -> dict[str, Expected]:
    """Rows in the order of the permutation, codes in exllama's order within their words."""
    return {"q_weight": Expected(gptq.shuffle(q_weight, q_perm, bit))}


def gptq_shuffle_plain(q_weight: torch.Tensor, q_perm: torch.Tensor, bit: int) -> None:
    """``gptq_shuffle``."""
    q_weight.copy_(gptq.shuffle(q_weight, q_perm, bit))


def gptq_gemm(
    a: torch.Tensor,
    b_q_weight: torch.Tensor,
    b_gptq_qzeros: torch.Tensor,
    b_gptq_scales: torch.Tensor,
    b_g_idx: torch.Tensor,
    use_exllama: bool,
    use_v2_format: bool,
    bit: int,
) -> Expected:
    """With exllama b_g_idx, if any, is the order of a's columns and the weights are shuffled; without, rows' groups."""
    order, weights = _gptq(b_q_weight, b_gptq_qzeros, b_gptq_scales, b_g_idx, use_exllama, use_v2_format, bit)
    result = product_of(a if order is None else a[:, order], weights)
    assert result.magnitude is not None
    # Where it multiplies with cublasHgemm the library rounds the sum after every product: on an H200 the largest of two
    # million sums of 14336 products was off by more than the limit for one rounding in sixteen.
    return Expected(result.value, coarse_scale(result.magnitude, a.shape[1], STEPS // 4))


def gptq_gemm_plain(
    a: torch.Tensor,
    b_q_weight: torch.Tensor,
    b_gptq_qzeros: torch.Tensor,
    b_gptq_scales: torch.Tensor,
    b_g_idx: torch.Tensor,
    use_exllama: bool,
    use_v2_format: bool,
    bit: int,
) -> torch.Tensor:
    """``gptq_gemm`` in the scales' dtype."""
    order, weights = _gptq(b_q_weight, b_gptq_qzeros, b_gptq_scales, b_g_idx, use_exllama, use_v2_format, bit)
    return (a if order is None else a[:, order]) @ weights


def _gptq(
    q_weight: torch.Tensor,
    qzeros: torch.Tensor,
    scales: torch.Tensor,
    g_idx: torch.Tensor,
    exllama: bool,
    second_format: bool,
    bits: int,
) -> tuple[torch.Tensor | None, torch.Tensor]:
    """The order of the activations' columns, None where it is their own, and the matrix (k, n)."""
    codes = gptq.unpack_rows(q_weight, bits, gptq.shuffled(bits) if exllama else gptq.sequential(bits))
    zeros = gptq.unpack_columns(qzeros, bits) + (0 if second_format else 1)
    k = codes.shape[0]
    group = torch.arange(k, device=codes.device) // (k // scales.shape[0]) if exllama else g_idx.long()
    weights = (codes - zeros[group]) * scales[group]
    return (g_idx.long() if exllama and g_idx.numel() else None), weights


def prepare_gptq(tensors: Tensors, variables: Variables, generator: torch.Generator) -> None:
    """Without exllama b_g_idx, drawn as a permutation, becomes every row's group; in no order with ``act_order``."""
    if not variables["exllama"]:
        index = tensors["b_g_idx"]
        index.copy_((index if variables["act_order"] else index.sort().values) // int(variables["group"]))


# --- CUTLASS ---


def cutlass_scaled_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scales: torch.Tensor,
    b_scales: torch.Tensor,
    bias: torch.Tensor | None,
    **_: Any,
) -> dict[str, Expected]:
    """a_scales * b_scales * (a @ b) + bias. The products of int8 are exact, those of fp8 have an error of their own."""
    factor = a_scales.reshape(-1, 1) * b_scales.reshape(1, -1)
    exact = not a.is_floating_point()
    sums = a.double() @ b.double()
    scale = sums.abs() if exact else coarse_scale((a.square() @ b.square()).sqrt(), a.shape[1])
    return {"out": with_bias(factor * sums, factor * scale, bias)}


def cutlass_scaled_mm_plain(
    out: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    a_scales: torch.Tensor,
    b_scales: torch.Tensor,
    bias: torch.Tensor | None,
) -> None:
    """``cutlass_scaled_mm`` in float32."""
    value = a_scales.reshape(-1, 1) * b_scales.reshape(1, -1) * (a.float() @ b.float())
    out.copy_(value if bias is None else value + bias)


def cutlass_scaled_mm_azp(
    a: torch.Tensor,
    b: torch.Tensor,
    a_scales: torch.Tensor,
    b_scales: torch.Tensor,
    azp_adj: torch.Tensor,
    azp: torch.Tensor | None,
    bias: torch.Tensor | None,
    **_: Any,
) -> dict[str, Expected]:
    """a_scales * b_scales * (a @ b - azp * azp_adj) + bias, where azp is 1 if it is not given."""
    factor = a_scales.reshape(-1, 1) * b_scales.reshape(1, -1)
    sums = a.double() @ b.double()
    shift = azp_adj.double().reshape(1, -1) * (1.0 if azp is None else azp.double().reshape(-1, 1))
    return {"out": with_bias(factor * (sums - shift), factor * (sums.abs() + shift.abs()), bias)}


def cutlass_scaled_mm_azp_plain(
    out: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    a_scales: torch.Tensor,
    b_scales: torch.Tensor,
    azp_adj: torch.Tensor,
    azp: torch.Tensor | None,
    bias: torch.Tensor | None,
) -> None:
    """``cutlass_scaled_mm_azp`` in float32, sums below 2²⁴ exact."""
    sums = a.float() @ b.float() - azp_adj.float() * (1.0 if azp is None else azp.float())
    value = a_scales.reshape(-1, 1) * b_scales.reshape(1, -1) * sums
    out.copy_(value if bias is None else value + bias)


def with_bias(value: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None) -> Expected:
    if bias is None:
        return Expected(value, scale)
    return Expected(value + bias, scale + bias.abs())


def prepare_azp(tensors: Tensors, variables: Variables, generator: torch.Generator) -> None:
    """azp_adj: the sums of b's columns, times the one zero point of a where a has one for all rows."""
    sums = tensors["b"].sum(0, keepdim=True, dtype=torch.int64)
    if not variables["per_token"]:
        sums = sums * int(torch.randint(-128, 128, (1,), generator=generator, device=generator.device))
    tensors["azp_adj"].copy_(sums)


def cutlass_pack_scale_fp8(scales: torch.Tensor) -> Expected:
    """-8 to -1 times every scale, one scale's eight next to one another."""
    multiples = torch.arange(-8, 0, device=scales.device, dtype=torch.float64)
    return Expected((scales.reshape(-1, 1) * multiples).clamp(-FP8_LARGEST, FP8_LARGEST).reshape(-1))


def cutlass_pack_scale_fp8_plain(scales: torch.Tensor) -> torch.Tensor:
    """``cutlass_pack_scale_fp8`` through float32, in which the multiples are exact."""
    multiples = torch.arange(-8, 0, device=scales.device, dtype=torch.float32)
    packed = (scales.float().reshape(-1, 1) * multiples).clamp(-FP8_LARGEST, FP8_LARGEST)
    return packed.reshape(-1).to(scales.dtype)


# --- AllSpark ---


def allspark_w8a16_gemm(
    a: torch.Tensor,
    b_qweight: torch.Tensor,
    b_scales: torch.Tensor,
    b_qzeros: torch.Tensor | None,
    n: int,
    **_: Any,
) -> Expected:
    """a times the matrix (code - 128 - zero) * scale, whose order is undone."""
    return product_of(a, _allspark(b_qweight, b_scales, b_qzeros, n))


def allspark_w8a16_gemm_plain(
    a: torch.Tensor,
    b_qweight: torch.Tensor,
    b_scales: torch.Tensor,
    b_qzeros: torch.Tensor | None,
    n: int,
    *_: Any,
) -> torch.Tensor:
    """``allspark_w8a16_gemm`` in a's dtype."""
    return a @ _allspark(b_qweight, b_scales, b_qzeros, n)


def _allspark(packed: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor | None, n: int) -> torch.Tensor:
    centred = (allspark.unpack(packed, n) - 128).to(scales.dtype)
    if zeros is not None:
        centred = centred - allspark.unpack_columns(zeros, n)
    return centred * allspark.unpack_columns(scales, n)


def prepare_allspark(tensors: Tensors, variables: Variables, generator: torch.Generator) -> None:
    """Zero points become whole numbers; columns of padding have NaN for a scale and must reach nothing."""
    n = int(variables["n"])
    if "b_qzeros" in tensors and tensors["b_qzeros"] is not None:
        tensors["b_qzeros"].round_()
    scales = tensors["b_scales"]
    plain = allspark.unpack_columns(scales, scales.shape[1]).clone()
    plain[:, n:] = float("nan")
    scales.copy_(allspark.pack_columns(plain))
