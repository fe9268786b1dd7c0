"""References of vLLM's quantised products and of what packs their weights, the structure of their inputs, and
fallbacks.

The reference functions take their entry's parameters by name, floating tensors as float64. ``prepare_*`` finish drawn
inputs in place. ``*_fallback`` have the entries' own signatures and dtypes and are timed where vLLM does not run.

A packed weight of random bits is a packed matrix of random codes, since every format here is a bijection. Only what has
structure is prepared: permutations, group indices, scales within blocks of bytes, 2:4 metadata, padding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.packing import allspark, awq, ggml, gptq, marlin, words

Tensors = Mapping[str, torch.Tensor]
Variables = Mapping[str, Any]

FP8_LARGEST: Final = 448.0
"""The largest finite number of float8_e4m3fn."""


def _product(a: torch.Tensor, b: torch.Tensor) -> Expected:
    """a @ b, with the root of the sum of the squares of an element's products as its scale."""
    return Expected(a @ b, (a.square() @ b.square()).sqrt())


STEPS: Final = 1024
"""Number of products up to which coarse sums have a constant limit; beyond it grows with the root of the number."""


def _coarse(scale: torch.Tensor, length: int, steps: int = STEPS) -> torch.Tensor:
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
    return _product(_in_feats, awq.weights(_kernel, _scaling_factors, _zeros))


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
    result = _product(a if order is None else a[:, order], weights)
    assert result.magnitude is not None
    # Where it multiplies with cublasHgemm the library rounds the sum after every product: on an H200 the largest of two
    # million sums of 14336 products was off by more than the limit for one rounding in sixteen.
    return Expected(result.value, _coarse(result.magnitude, a.shape[1], STEPS // 4))


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
    scale = sums.abs() if exact else _coarse((a.square() @ b.square()).sqrt(), a.shape[1])
    return {"out": _with_bias(factor * sums, factor * scale, bias)}


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
    return {"out": _with_bias(factor * (sums - shift), factor * (sums.abs() + shift.abs()), bias)}


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


def _with_bias(value: torch.Tensor, scale: torch.Tensor, bias: torch.Tensor | None) -> Expected:
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


# --- GGUF ---

HALF_FLOOR: Final = 2.0**-14
"""The smallest normal float16: below it the rounding of float16 arithmetic no longer shrinks."""
DEVIATIONS: Final = 6.0
"""Standard deviations of what quantising the activations may do to a product."""
HALF_UNIT: Final = 2.0**-11
"""Relative rounding error of float16."""
LIMIT_SHARE: Final = 2.0**-8
"""Share of its scale by which an element of a product may be off: ulps 4 of float16 arithmetic, see the problems'
tolerance."""


def ggml_dequantize(W: torch.Tensor, type: int, **_: Any) -> Expected:
    """The values of the blocks. The library computes them in float16, so that is what the error is scaled for."""
    scaled, added = ggml.parts(W, type)
    return Expected(scaled + added, scaled.abs() + added.abs() + HALF_FLOOR)


def ggml_dequantize_plain(W: torch.Tensor, type: int, m: int, n: int, dtype: torch.dtype | None) -> torch.Tensor:
    """``ggml_dequantize`` in float64, rounded once."""
    return ggml.dequantize(W, type).to(dtype or torch.float16)


def ggml_mul_mat(W: torch.Tensor, X: torch.Tensor, type: int, row: int) -> Expected:
    """X times the transposed matrix W, the activations as they are."""
    return _a8_product(X, W, type)


def ggml_mul_mat_plain(W: torch.Tensor, X: torch.Tensor, type: int, row: int) -> torch.Tensor:
    """``ggml_mul_mat_a8`` and ``ggml_mul_mat_vec_a8`` without quantising X."""
    return X @ ggml.dequantize(W, type).to(X.dtype).T


def ggml_moe_a8(
    X: torch.Tensor,
    W: torch.Tensor,
    sorted_token_ids: torch.Tensor,
    expert_ids: torch.Tensor,
    type: int,
    row: int,
    top_k: int,
    tokens: int,
    **_: Any,
) -> Expected:
    """Result id of the sorted ids is token id // top_k times the matrix of the expert of its block of ids."""
    chosen = _experts(sorted_token_ids, expert_ids, tokens * top_k)
    return _each_expert(X, W, chosen, type, top_k)


def ggml_moe_a8_vec(
    X: torch.Tensor, W: torch.Tensor, topk_ids: torch.Tensor, top_k: int, type: int, row: int, tokens: int
) -> Expected:
    """Result i is token i // top_k times the matrix of expert topk_ids.flatten()[i]."""
    return _each_expert(X, W, topk_ids.reshape(-1).long(), type, top_k)


def ggml_moe_a8_plain(
    X: torch.Tensor,
    W: torch.Tensor,
    sorted_token_ids: torch.Tensor,
    expert_ids: torch.Tensor,
    num_tokens_post_padded: torch.Tensor,
    type: int,
    row: int,
    top_k: int,
    tokens: int,
) -> torch.Tensor:
    """``ggml_moe_a8`` without quantising X."""
    chosen = _experts(sorted_token_ids, expert_ids, tokens * top_k)
    return _moe_plain(X, W, chosen, type, top_k)


def ggml_moe_a8_vec_plain(
    X: torch.Tensor, W: torch.Tensor, topk_ids: torch.Tensor, top_k: int, type: int, row: int, tokens: int
) -> torch.Tensor:
    """``ggml_moe_a8_vec`` without quantising X."""
    return _moe_plain(X, W, topk_ids.reshape(-1).long(), type, top_k)


def _moe_plain(x: torch.Tensor, packed: torch.Tensor, chosen: torch.Tensor, number: int, top_k: int) -> torch.Tensor:
    matrices = ggml.dequantize(packed, number).to(x.dtype)
    tokens = torch.arange(chosen.numel(), device=x.device) // top_k
    out = x.new_zeros(chosen.numel(), packed.shape[1])
    for expert in range(packed.shape[0]):
        mine = (chosen == expert).nonzero()[:, 0]
        out[mine] = x[tokens[mine]] @ matrices[expert].T
    return out


def _experts(sorted_ids: torch.Tensor, expert_ids: torch.Tensor, count: int) -> torch.Tensor:
    """int64 (count,): the expert of every result, by the sorted ids in blocks of one expert each."""
    per_block = sorted_ids.numel() // expert_ids.numel()
    of_id = expert_ids.long().repeat_interleave(per_block)
    live = sorted_ids < count
    chosen = torch.zeros(count, dtype=torch.int64, device=sorted_ids.device)
    chosen[sorted_ids[live].long()] = of_id[live]
    return chosen


def _each_expert(x: torch.Tensor, packed: torch.Tensor, chosen: torch.Tensor, number: int, top_k: int) -> Expected:
    """x: (tokens, k); packed: (experts, rows, bytes); chosen: (results,), the expert of each."""
    tokens = torch.arange(chosen.numel(), device=x.device) // top_k
    value = torch.zeros(chosen.numel(), packed.shape[1], dtype=torch.float64, device=x.device)
    scale = torch.zeros_like(value)
    for expert in sorted(set(chosen.tolist())):
        mine = (chosen == expert).nonzero()[:, 0]
        result = _a8_product(x[tokens[mine]], packed[expert], number)
        assert result.magnitude is not None
        value[mine], scale[mine] = result.value, result.magnitude
    return Expected(value, scale)


def _a8_product(x: torch.Tensor, packed: torch.Tensor, number: int) -> Expected:
    """x times the transpose of a packed matrix: x: (batch, k), packed: uint8 (rows, bytes of k values).

    The value is the product with x as it is. The scale makes room for a kernel that rounds x to Q8_1 as vLLM's do,
    which of 32 activations each keeps d = max|x| / 127 and the sum s in float16 and the codes round(x / d):

    - a code is off by up to half a step, which is d / sqrt(12) in the root mean square, times the weight that it meets:
      of formats with minima that is the scaled code for one kernel of vLLM and the whole weight for another;
    - d and s are off by the rounding of float16, times what they meet: with the weight ``scaled + added`` the
      activations' codes meet ``scaled`` and s meets ``added``.

    DEVIATIONS times the root of the sum of their squares is allowed. It is 2 to 6 % of the root mean square of an
    output: codes of 7 bits or of float8 do not pass, float16 and better do.
    """
    scaled, added = ggml.parts(packed, number, unsigned=number in (2, 6))
    weights = scaled + added
    rows, batch = packed.shape[0], x.shape[0]
    blocks = x.reshape(batch, -1, 32)
    met = (
        (scaled.abs() if number in (3, 7) else torch.maximum(scaled.abs(), weights.abs()))
        .square()
        .reshape(rows, -1, 32)
        .sum(-1)
    )
    steps = blocks.abs().amax(-1) / 127
    quantised = (steps.square() / 12 + HALF_UNIT**2 * blocks.square().sum(-1)) @ met.T
    summed = blocks.sum(-1).square() @ added.reshape(rows, -1, 32).abs().amax(-1).square().T
    rounding = DEVIATIONS * (quantised + HALF_UNIT**2 * summed).sqrt() / LIMIT_SHARE
    return Expected(x @ weights.T, (x.square() @ weights.square().T).sqrt() + rounding)


def prepare_ggml(tensors: Tensors, variables: Variables, generator: torch.Generator) -> None:
    """Scales into the blocks of W, so that weights are about 0.03 to 0.1; the other bytes stay random.

    ``values: extreme``: scales of both signs, zeros, denormals and large ones.
    """
    number, packed = int(variables["type"]), tensors["W"]
    form = ggml.FORMATS[number]
    blocks = packed.reshape(-1, form.nbytes)
    if blocks.data_ptr() != packed.data_ptr():
        raise ValueError("W is not contiguous")
    largest = (127 if form.nonlinear else 1 << (form.code_bits - 1)) * max(1, 1 << max(form.scale_bits - 1, 0))
    unit = torch.rand(2, blocks.shape[0], generator=generator, device=generator.device)
    halves = (0.25 + 0.75 * unit) * (0.2 / largest)
    if form.nbytes in (20, 24):
        halves[1] = -unit[1] * halves[0] * (1 << form.code_bits)
    elif form.minima:
        halves[1] *= 1 << (form.code_bits - 2)
    if variables["values"] == "extreme":
        table = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0**-24, 3e-5, -0.37, 4.0 * min(1.0, 64 / largest)])
        halves = table.to(halves.device)[(unit * len(table)).long()]
    ggml.set_halves(blocks, number, *halves)


def prepare_ggml_moe(tensors: Tensors, variables: Variables, generator: torch.Generator) -> None:
    """``prepare_ggml``, and the ids sorted by expert in blocks of ``block``, padded with tokens * top_k.

    ``load``: ``even`` draws experts at random, ``one`` gives all to one expert, ``few`` leaves every second one empty.
    """
    prepare_ggml(tensors, variables, generator)
    results, experts = int(variables["tokens"]) * int(variables["top_k"]), int(variables["experts"])
    chosen = _choose(results, experts, int(variables["picks"]), str(variables["load"]), generator)
    if "topk_ids" in tensors:
        tensors["topk_ids"].copy_(chosen.reshape(tensors["topk_ids"].shape))
        return
    block, ids, of_block = int(variables["block"]), tensors["sorted_token_ids"], tensors["expert_ids"]
    counts = torch.bincount(chosen, minlength=experts)
    padded = (counts + block - 1) // block * block
    ends = padded.cumsum(0)
    order = chosen.argsort(stable=True)
    rank = torch.arange(results, device=chosen.device) - (counts.cumsum(0) - counts)[chosen[order]]
    ids.fill_(results)
    ids[(ends - padded)[chosen[order]] + rank] = order.to(ids.dtype)
    starts = torch.arange(of_block.numel(), device=chosen.device) * block
    of_block.copy_(torch.searchsorted(ends, starts, right=True).clamp(max=experts - 1))
    tensors["num_tokens_post_padded"].fill_(int(ends[-1]))


def _choose(results: int, experts: int, picks: int, load: str, generator: torch.Generator) -> torch.Tensor:
    """int64 (results,): experts, of ``picks`` results that follow one another no two the same."""
    if load == "one":
        return torch.full((results,), experts - 1, device=generator.device)
    step = 2 if load == "few" else 1
    keys = torch.rand(-(-results // picks), experts // step, generator=generator, device=generator.device)
    return keys.argsort(1)[:, :picks].reshape(-1)[:results] * step


# --- Marlin ---


def marlin_int4_fp8_preprocess(qweight: torch.Tensor, qzeros_or_none: torch.Tensor | None, **_: Any) -> Expected:
    """Codes less their zero where they reach it, 15 - code below it, in their places."""
    return Expected(_below_zero(qweight, qzeros_or_none))


def marlin_int4_fp8_preprocess_inplace(
    qweight: torch.Tensor, qzeros_or_none: torch.Tensor | None, **_: Any
) -> dict[str, Expected]:
    """The same, written to qweight."""
    return {"qweight": Expected(_below_zero(qweight, qzeros_or_none))}


def marlin_int4_fp8_preprocess_plain(
    qweight: torch.Tensor, qzeros_or_none: torch.Tensor | None, inplace: bool
) -> torch.Tensor:
    """``marlin_int4_fp8_preprocess``."""
    result = _below_zero(qweight, qzeros_or_none)
    return qweight.copy_(result) if inplace else result


def _below_zero(qweight: torch.Tensor, qzeros: torch.Tensor | None) -> torch.Tensor:
    codes = words.unpack(qweight, 4)
    if qzeros is None:
        zeros = torch.full_like(codes, 8)
    else:
        zeros = words.unpack(qzeros, 4).repeat_interleave(qweight.shape[0] // qzeros.shape[0], 0)
    return words.pack(torch.where(codes >= zeros, codes - zeros, 15 - codes), 4)


def prepare_permutations(tensors: Tensors, variables: Variables, generator: torch.Generator) -> None:
    """perm: every expert's own permutation, if it has elements."""
    perm = tensors["perm"]
    perm.copy_(torch.rand(perm.shape, generator=generator, device=generator.device).argsort(1))


def gptq_marlin_moe_repack(
    b_q_weight: torch.Tensor, perm: torch.Tensor, size_k: int, size_n: int, num_bits: int, is_a_8bit: bool
) -> Expected:
    """Every expert's GPTQ matrix, its rows in the order of perm, in Marlin's order."""
    return Expected(gptq_marlin_moe_repack_plain(b_q_weight, perm, size_k, size_n, num_bits, is_a_8bit))


def gptq_marlin_moe_repack_plain(
    b_q_weight: torch.Tensor, perm: torch.Tensor, size_k: int, size_n: int, num_bits: int, is_a_8bit: bool
) -> torch.Tensor:
    """``gptq_marlin_moe_repack``."""
    order = marlin.EIGHT_BIT if is_a_8bit else marlin.PLAIN
    packed = []
    for expert, rows in zip(b_q_weight, perm, strict=True):
        codes = gptq.unpack_rows(expert, num_bits)
        packed.append(marlin.pack(codes[rows.long()] if rows.numel() else codes, num_bits, order))
    return torch.stack(packed)


def awq_marlin_moe_repack(
    b_q_weight: torch.Tensor, perm: torch.Tensor, size_k: int, size_n: int, num_bits: int, is_a_8bit: bool
) -> Expected:
    """Every expert's AWQ matrix in Marlin's order."""
    return Expected(awq_marlin_moe_repack_plain(b_q_weight, perm, size_k, size_n, num_bits, is_a_8bit))


def awq_marlin_moe_repack_plain(
    b_q_weight: torch.Tensor, perm: torch.Tensor, size_k: int, size_n: int, num_bits: int, is_a_8bit: bool
) -> torch.Tensor:
    """``awq_marlin_moe_repack``."""
    order = marlin.EIGHT_BIT if is_a_8bit else marlin.PLAIN
    return torch.stack([marlin.pack(awq.unpack(expert, num_bits), num_bits, order) for expert in b_q_weight])


BITS: Final = {1125899907892224: 4, 1125899923621888: 8, 1125899906843648: 4}
"""Bits of a code, by vLLM's number of a scalar type: uint4b8, uint8b128, uint4. The name after b is the zero point."""


def gptq_marlin_gemm(
    a: torch.Tensor,
    b_q_weight: torch.Tensor,
    b_bias_or_none: torch.Tensor | None,
    b_scales: torch.Tensor,
    b_zeros_or_none: torch.Tensor | None,
    g_idx_or_none: torch.Tensor | None,
    perm_or_none: torch.Tensor | None,
    b_type_id: int,
    **_: Any,
) -> Expected:
    """a, its columns in the order of perm, times the matrix, plus the bias."""
    weights = _marlin(b_q_weight, b_scales, b_zeros_or_none, g_idx_or_none, b_type_id)
    result = _product(a if perm_or_none is None else a[:, perm_or_none.long()], weights)
    if b_bias_or_none is None:
        return result
    assert result.magnitude is not None
    return _with_bias(result.value, result.magnitude, marlin.restore_columns(b_bias_or_none, marlin.SINGLE_SCALES))


def gptq_marlin_gemm_plain(
    a: torch.Tensor,
    c_or_none: torch.Tensor | None,
    b_q_weight: torch.Tensor,
    b_bias_or_none: torch.Tensor | None,
    b_scales: torch.Tensor,
    a_scales: torch.Tensor | None,
    global_scale: torch.Tensor | None,
    b_zeros_or_none: torch.Tensor | None,
    g_idx_or_none: torch.Tensor | None,
    perm_or_none: torch.Tensor | None,
    workspace: torch.Tensor,
    b_type_id: int,
    *_: Any,
) -> torch.Tensor:
    """``gptq_marlin_gemm`` in a's dtype."""
    weights = _marlin(b_q_weight, b_scales, b_zeros_or_none, g_idx_or_none, b_type_id)
    result = (a if perm_or_none is None else a[:, perm_or_none.long()]) @ weights
    return result if b_bias_or_none is None else result + marlin.restore_columns(b_bias_or_none, marlin.SINGLE_SCALES)


def _marlin(
    packed: torch.Tensor,
    scales: torch.Tensor,
    zeros: torch.Tensor | None,
    g_idx: torch.Tensor | None,
    type_id: int,
) -> torch.Tensor:
    """The matrix (k, n)."""
    bits = BITS[type_id]
    codes = marlin.unpack(packed, bits)
    k, groups = codes.shape[0], scales.shape[0]
    group = torch.arange(k, device=codes.device) // (k // groups) if g_idx is None else g_idx.long()
    plain = marlin.restore_columns(scales, marlin.scale_order(groups))
    zero = 1 << (bits - 1) if zeros is None else marlin.unpack_zeros(zeros, bits)[group]
    return (codes - zero) * plain[group]


def prepare_marlin(tensors: Tensors, variables: Variables, generator: torch.Generator) -> None:
    """With ``act_order`` perm, drawn as a permutation, sorts rows by their group; g_idx is the groups in that order."""
    if variables["act_order"]:
        index = tensors["g_idx_or_none"]
        index.copy_(torch.arange(index.numel(), device=index.device) // int(variables["group"]))


def gptq_marlin_24_gemm(
    a: torch.Tensor,
    b_q_weight: torch.Tensor,
    b_meta: torch.Tensor,
    b_scales: torch.Tensor,
    b_q_type: int,
    **_: Any,
) -> Expected:
    """a times the matrix of which two of four rows each are stored."""
    return _product(a, _sparse(b_q_weight, b_meta, b_scales, b_q_type))


def gptq_marlin_24_gemm_plain(
    a: torch.Tensor,
    b_q_weight: torch.Tensor,
    b_meta: torch.Tensor,
    b_scales: torch.Tensor,
    workspace: torch.Tensor,
    b_q_type: int,
    *_: Any,
) -> torch.Tensor:
    """``gptq_marlin_24_gemm`` in a's dtype."""
    return a @ _sparse(b_q_weight, b_meta, b_scales, b_q_type)


def _sparse(packed: torch.Tensor, meta: torch.Tensor, scales: torch.Tensor, type_id: int) -> torch.Tensor:
    bits = BITS[type_id]
    stored = marlin.unpack(packed, bits, marlin.SPARSE) - (1 << (bits - 1))
    dense = marlin.spread(stored, marlin.unpack_meta(meta), 0)
    plain = marlin.restore_columns(scales, marlin.scale_order(scales.shape[0], sparse=True))
    return dense * plain.repeat_interleave(dense.shape[0] // scales.shape[0], 0)


def prepare_sparse(tensors: Tensors, variables: Variables, generator: torch.Generator) -> None:
    """Metadata: of every four rows of a column two at random."""
    meta = tensors["b_meta"]
    quads, n = meta.shape[0] * 8, meta.shape[1] // 2
    keys = torch.rand(quads, 4, n, generator=generator, device=generator.device)
    meta.copy_(marlin.pack_meta(keys.argsort(1)[:, :2].sort(1).values))


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
    return _product(a, _allspark(b_qweight, b_scales, b_qzeros, n))


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
