"""References of vLLM's Marlin kernels and of what packs their weights, their inputs' structure, and plain versions.

Conventions are those of ``vllm_quantized.py``.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.packing import awq, gptq, marlin, words
from kgbench.baselines.references.vllm_quantized import Tensors, Variables, product_of, with_bias


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
    result = product_of(a if perm_or_none is None else a[:, perm_or_none.long()], weights)
    if b_bias_or_none is None:
        return result
    assert result.magnitude is not None
    return with_bias(result.value, result.magnitude, marlin.restore_columns(b_bias_or_none, marlin.SINGLE_SCALES))


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
    return product_of(a, _sparse(b_q_weight, b_meta, b_scales, b_q_type))


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
