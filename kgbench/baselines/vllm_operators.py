"""A table of the names and parameters with which vLLM's compiled operators are registered, by problem.

Parameters are those of vLLM 0.20.2, types first and without alias marks; further ones of another version must have
defaults. A row has several registrations if versions differ; the first that exists and fits is called.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from kgbench.problem import blas, schemas

Adapter = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True)
class Registration:
    """An operator as some version of vLLM registers it."""

    name: str
    """``namespace::name``."""
    parameters: str
    """Parameters as ``torch`` prints them: ``Tensor result, Tensor? scale, int n``."""
    adapter: Adapter | None = None
    """Turns the registered operator into a function of the entry's arguments; None if they are the same."""


@dataclass(frozen=True)
class Operator:
    """A row: the operator of a problem."""

    registrations: tuple[Registration, ...]
    """Registrations of the operator, the newest first."""
    entry: str = ""
    """Parameters of the entry if an adapter changes those of the first registration."""
    problem: str = ""
    """Name of the problem if it has several operators; else the row's own name."""
    capability: tuple[int, int] | None = None
    """Lowest and highest compute capability for which vLLM builds the operator, 90 for 9.0; None for all."""


# --- adapters ---


def _each_expert(operator: Callable[..., Any]) -> Callable[..., Any]:
    """Call the operator once per expert, as vLLM's own functions of this name do."""
    stack = importlib.import_module("torch").stack  # by whoever calls it; reading the table needs no torch

    def call(b_q_weight: Any, perm: Any, *sizes: Any) -> Any:
        return stack([operator(b_q_weight[e], perm[e], *sizes) for e in range(b_q_weight.shape[0])])

    return call


def _each_expert_unpermuted(operator: Callable[..., Any]) -> Callable[..., Any]:
    stack = importlib.import_module("torch").stack  # by whoever calls it; reading the table needs no torch

    def call(b_q_weight: Any, perm: Any, *sizes: Any) -> Any:
        return stack([operator(b_q_weight[e], *sizes) for e in range(b_q_weight.shape[0])])

    return call


def _without_block_size(operator: Callable[..., Any]) -> Callable[..., Any]:
    """Drop the block size: before 0.20 the operator read it from the tensors."""

    def call(src: Any, dst: Any, block_size_in_bytes: int, block_mapping: Any) -> Any:
        return operator(src, dst, block_mapping)

    return call


# --- the table ---


def operator_of(name: str) -> Operator:
    """The row of ``name``, or one made of a name with its schema: ``silu_and_mul(_C::silu_and_mul(…) -> ())``.

    Raises ``ValueError`` for neither, for both, and for a schema that cannot be parsed.
    """
    short, own = blas.split(name)
    if not own:
        if short in OPERATORS:
            return OPERATORS[short]
        raise ValueError(
            f"vllm:{short}: no operator is known; add its row to OPERATORS in baselines/vllm_operators.py, or the key "
            "signature to the problem's file"
        )
    if short in OPERATORS:
        raise ValueError(f"vllm:{short} has a row in baselines/vllm_operators.py; remove the key signature")
    schema = schemas.parsed(own)
    return Operator((Registration(schema.name, schema.plain),))


def _row(name: str, parameters: str, **more: Any) -> Operator:
    """A row with one registration."""
    return Operator((Registration(name, parameters),), **more)


_PAGED: Final = (
    "Tensor query, Tensor key_cache, Tensor value_cache, int num_kv_heads, float scale, Tensor block_tables, "
    "Tensor seq_lens, int block_size, int max_seq_len, Tensor? alibi_slopes, str kv_cache_dtype, Tensor k_scale, "
    "Tensor v_scale, int tp_rank, int blocksparse_local_blocks, int blocksparse_vert_stride, "
    "int blocksparse_block_size, int blocksparse_head_sliding_step"
)
_INTO_CACHE: Final = (
    "Tensor key, Tensor value, Tensor key_cache, Tensor value_cache, Tensor slot_mapping, str kv_cache_dtype, "
    "Tensor k_scale, Tensor v_scale"
)
_MARLIN: Final = (
    "Tensor a, Tensor? c_or_none, Tensor b_q_weight, Tensor? b_bias_or_none, Tensor b_scales, Tensor? a_scales, "
    "Tensor? global_scale, Tensor? b_zeros_or_none, Tensor? g_idx_or_none, Tensor? perm_or_none, Tensor workspace, "
    "int b_type_id, SymInt size_m, SymInt size_n, SymInt size_k, bool is_k_full, bool use_atomic_add, "
    "bool use_fp32_reduce, bool is_zp_float"
)
_REPACK: Final = "Tensor b_q_weight, Tensor perm, SymInt size_k, SymInt size_n, int num_bits, bool is_a_8bit"

OPERATORS: Final[dict[str, Operator]] = {
    # --- norms ---
    "rms_norm": _row("_C::rms_norm", "Tensor result, Tensor input, Tensor weight, float epsilon"),
    "fused_add_rms_norm": _row("_C::fused_add_rms_norm", "Tensor input, Tensor residual, Tensor weight, float epsilon"),
    "rms_norm_dynamic_per_token_quant": _row(
        "_C::rms_norm_dynamic_per_token_quant",
        "Tensor result, Tensor input, Tensor weight, Tensor scale, float epsilon, Tensor? scale_ub, Tensor? residual",
    ),
    "rms_norm_per_block_quant": _row(
        "_C::rms_norm_per_block_quant",
        "Tensor result, Tensor input, Tensor weight, Tensor scale, float epsilon, Tensor? scale_ub, Tensor? residual, "
        "int group_size, bool is_scale_transposed",
    ),
    "fused_qk_norm_rope": _row(
        "_C::fused_qk_norm_rope",
        "Tensor qkv, int num_heads_q, int num_heads_k, int num_heads_v, int head_dim, float eps, Tensor q_weight, "
        "Tensor k_weight, Tensor cos_sin_cache, bool is_neox, Tensor position_ids",
    ),
    "rotary_embedding": _row(
        "_C::rotary_embedding",
        "Tensor positions, Tensor query, Tensor? key, int head_size, Tensor cos_sin_cache, bool is_neox",
    ),
    # --- attention ---
    "paged_attention_v1": _row("_C::paged_attention_v1", f"Tensor out, {_PAGED}"),
    "paged_attention_v2": _row(
        "_C::paged_attention_v2", f"Tensor out, Tensor exp_sums, Tensor max_logits, Tensor tmp_out, {_PAGED}"
    ),
    "merge_attn_states": _row(
        "_C::merge_attn_states",
        "Tensor output, Tensor? output_lse, Tensor prefix_output, Tensor prefix_lse, Tensor suffix_output, "
        "Tensor suffix_lse, int? prefill_tokens_with_context, Tensor? output_scale",
    ),
    "convert_vertical_slash_indexes": _row(
        "_C::convert_vertical_slash_indexes",
        # The schema also names the keys' lengths q_seqlens.
        "Tensor block_count, Tensor block_offset, Tensor column_count, Tensor column_index, Tensor q_seqlens, "
        "Tensor q_seqlens, Tensor vertical_indexes, Tensor slash_indexes, int context_size, int block_size_M, "
        "int block_size_N, bool causal",
    ),
    # --- caches ---
    "reshape_and_cache": _row("_C_cache_ops::reshape_and_cache", _INTO_CACHE),
    "reshape_and_cache_flash": _row("_C_cache_ops::reshape_and_cache_flash", _INTO_CACHE),
    "concat_and_cache_mla": _row(
        "_C_cache_ops::concat_and_cache_mla",
        "Tensor kv_c, Tensor k_pe, Tensor kv_cache, Tensor slot_mapping, str kv_cache_dtype, Tensor scale",
    ),
    "gather_and_maybe_dequant_cache": _row(
        "_C_cache_ops::gather_and_maybe_dequant_cache",
        "Tensor src_cache, Tensor dst, Tensor block_table, Tensor cu_seq_lens, Tensor token_to_seq, int num_tokens, "
        "str kv_cache_dtype, Tensor scale, Tensor? seq_starts",
    ),
    "cp_gather_cache": _row(
        "_C_cache_ops::cp_gather_cache",
        "Tensor src_cache, Tensor dst, Tensor block_table, Tensor cu_seq_lens, int batch_size, Tensor? seq_starts",
    ),
    "cp_gather_indexer_k_quant_cache": _row(
        "_C_cache_ops::cp_gather_indexer_k_quant_cache",
        "Tensor kv_cache, Tensor dst_k, Tensor dst_scale, Tensor block_table, Tensor cu_seq_lens",
    ),
    "convert_fp8": _row(
        "_C_cache_ops::convert_fp8", "Tensor dst_cache, Tensor src_cache, float scale, str kv_cache_dtype"
    ),
    "copy_blocks": _row(
        "_C_cache_ops::copy_blocks", "Tensor[] key_caches, Tensor[] value_caches, Tensor block_mapping"
    ),
    "copy_blocks_mla": _row("_C_cache_ops::copy_blocks_mla", "Tensor[] kv_caches, Tensor block_mapping"),
    "swap_blocks": Operator(
        (
            Registration(
                "_C_cache_ops::swap_blocks", "Tensor src, Tensor dst, int block_size_in_bytes, Tensor block_mapping"
            ),
            Registration(
                "_C_cache_ops::swap_blocks", "Tensor src, Tensor dst, Tensor block_mapping", _without_block_size
            ),
        )
    ),
    # --- quantisation ---
    "static_scaled_fp8_quant": _row(
        "_C::static_scaled_fp8_quant", "Tensor result, Tensor input, Tensor scale", problem="scaled_fp8_quant"
    ),
    "dynamic_scaled_fp8_quant": _row(
        "_C::dynamic_scaled_fp8_quant", "Tensor result, Tensor input, Tensor scale", problem="scaled_fp8_quant"
    ),
    "dynamic_per_token_scaled_fp8_quant": _row(
        "_C::dynamic_per_token_scaled_fp8_quant",
        "Tensor result, Tensor input, Tensor scale, Tensor? scale_ub",
        problem="scaled_fp8_quant",
    ),
    "static_scaled_int8_quant": _row(
        "_C::static_scaled_int8_quant",
        "Tensor result, Tensor input, Tensor scale, Tensor? azp",
        problem="scaled_int8_quant",
    ),
    "dynamic_scaled_int8_quant": _row(
        "_C::dynamic_scaled_int8_quant",
        "Tensor result, Tensor input, Tensor scale, Tensor? azp",
        problem="scaled_int8_quant",
    ),
    # --- products of quantised matrices ---
    "cutlass_scaled_mm": _row(
        "_C::cutlass_scaled_mm", "Tensor out, Tensor a, Tensor b, Tensor a_scales, Tensor b_scales, Tensor? bias"
    ),
    "cutlass_scaled_mm_azp": _row(
        "_C::cutlass_scaled_mm_azp",
        "Tensor out, Tensor a, Tensor b, Tensor a_scales, Tensor b_scales, Tensor azp_adj, Tensor? azp, Tensor? bias",
    ),
    "awq_gemm": _row(
        "_C::awq_gemm",
        "Tensor _in_feats, Tensor _kernel, Tensor _scaling_factors, Tensor _zeros, SymInt split_k_iters",
    ),
    "gptq_gemm": _row(
        "_C::gptq_gemm",
        "Tensor a, Tensor b_q_weight, Tensor b_gptq_qzeros, Tensor b_gptq_scales, Tensor b_g_idx, bool use_exllama, "
        "bool use_v2_format, int bit",
    ),
    "gptq_marlin_gemm": Operator(
        (Registration("_C::marlin_gemm", _MARLIN), Registration("_C::gptq_marlin_gemm", _MARLIN))
    ),
    "gptq_marlin_24_gemm": _row(
        "_C::gptq_marlin_24_gemm",
        "Tensor a, Tensor b_q_weight, Tensor b_meta, Tensor b_scales, Tensor workspace, int b_q_type, SymInt size_m, "
        "SymInt size_n, SymInt size_k",
    ),
    "allspark_w8a16_gemm": _row(
        "_C::allspark_w8a16_gemm",
        "Tensor a, Tensor b_qweight, Tensor b_scales, Tensor? b_qzeros, SymInt n, SymInt group_size, SymInt sm_count, "
        "SymInt sm_version, SymInt CUBLAS_M_THRESHOLD, bool has_zp, bool n32k16_reorder",
        capability=(80, 89),
    ),
    "ggml_dequantize": _row("_C::ggml_dequantize", "Tensor W, int type, SymInt m, SymInt n, ScalarType? dtype"),
    "ggml_mul_mat_a8": _row("_C::ggml_mul_mat_a8", "Tensor W, Tensor X, int type, SymInt row"),
    "ggml_mul_mat_vec_a8": _row("_C::ggml_mul_mat_vec_a8", "Tensor W, Tensor X, int type, SymInt row"),
    "ggml_moe_a8": _row(
        "_C::ggml_moe_a8",
        "Tensor X, Tensor W, Tensor sorted_token_ids, Tensor expert_ids, Tensor num_tokens_post_padded, int type, "
        "SymInt row, SymInt top_k, SymInt tokens",
    ),
    "ggml_moe_a8_vec": _row(
        "_C::ggml_moe_a8_vec",
        "Tensor X, Tensor W, Tensor topk_ids, int top_k, int type, SymInt row, SymInt tokens",
    ),
    # --- weights in other orders ---
    "gptq_shuffle": _row("_C::gptq_shuffle", "Tensor q_weight, Tensor q_perm, int bit"),
    "gptq_marlin_moe_repack": Operator((Registration("_C::gptq_marlin_repack", _REPACK, _each_expert),), entry=_REPACK),
    "awq_marlin_moe_repack": Operator(
        (
            Registration(
                "_C::awq_marlin_repack",
                "Tensor b_q_weight, SymInt size_k, SymInt size_n, int num_bits, bool is_a_8bit",
                _each_expert_unpermuted,
            ),
        ),
        entry=_REPACK,
    ),
    "marlin_int4_fp8_preprocess": _row(
        "_C::marlin_int4_fp8_preprocess", "Tensor qweight, Tensor? qzeros_or_none, bool inplace"
    ),
    "cutlass_pack_scale_fp8": _row("_C::cutlass_pack_scale_fp8", "Tensor scales", capability=(90, 90)),
    "permute_cols": _row("_C::permute_cols", "Tensor A, Tensor perm"),
    # --- mixtures of experts ---
    "topk_softmax": _row(
        "_moe_C::topk_softmax",
        "Tensor topk_weights, Tensor topk_indices, Tensor token_expert_indices, Tensor gating_output, "
        "bool renormalize, Tensor? bias",
    ),
    "grouped_topk": _row(
        "_moe_C::grouped_topk",
        "Tensor scores, int n_group, int topk_group, int topk, bool renormalize, float routed_scaling_factor, "
        "Tensor bias, int scoring_func",
    ),
    "moe_align_block_size": _row(
        "_moe_C::moe_align_block_size",
        "Tensor topk_ids, int num_experts, int block_size, Tensor sorted_token_ids, Tensor experts_ids, "
        "Tensor num_tokens_post_pad, Tensor? maybe_expert_map",
    ),
    "batched_moe_align_block_size": _row(
        "_moe_C::batched_moe_align_block_size",
        "int max_tokens_per_batch, int block_size, Tensor expert_num_tokens, Tensor sorted_token_ids, "
        "Tensor experts_ids, Tensor num_tokens_post_pad",
    ),
    "moe_lora_align_block_size": _row(
        "_moe_C::moe_lora_align_block_size",
        "Tensor topk_ids, Tensor token_lora_mapping, int num_experts, int block_size, int max_loras, "
        "int max_num_tokens_padded, int max_num_m_blocks, Tensor sorted_token_ids, Tensor experts_ids, "
        "Tensor num_tokens_post_pad, Tensor adapter_enabled, Tensor lora_ids, Tensor? maybe_expert_map",
    ),
    "moe_sum": _row("_moe_C::moe_sum", "Tensor input, Tensor output"),
    "shuffle_rows": _row("_moe_C::shuffle_rows", "Tensor input_tensor, Tensor dst2src_map, Tensor output_tensor"),
    # --- others ---
    "apply_repetition_penalties_cuda": _row(
        "_C::apply_repetition_penalties_",
        "Tensor logits, Tensor prompt_mask, Tensor output_mask, Tensor repetition_penalties",
    ),
    "selective_scan_fwd": _row(
        "_C::selective_scan_fwd",
        "Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C, Tensor? D_, Tensor? z_, Tensor? delta_bias_, "
        "bool delta_softplus, Tensor? query_start_loc, Tensor? cache_indices, Tensor? has_initial_state, "
        "Tensor ssm_states, int null_block_id, int block_size, Tensor? block_idx_first_scheduled_token, "
        "Tensor? block_idx_last_scheduled_token, Tensor? initial_state_idx, Tensor? cu_chunk_seqlen, "
        "Tensor? last_chunk_indices",
    ),
    "hadacore_transform": _row("_C::hadacore_transform", "Tensor x, bool inplace"),
}
"""Every operator, by the name after ``vllm:`` in a problem file."""
