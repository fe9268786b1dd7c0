"""How long judging a kernel of each shipped problem took, where nothing is known of this device yet."""

from __future__ import annotations

from typing import Final

USUAL_DURATIONS: Final[dict[str, dict[str, int]]] = {
    "aten": {
        "_index_put_impl_": 40, "_local_scalar_dense": 1, "_softmax": 33, "_to_copy": 15, "acosh": 18, "add": 26,
        "add_": 19, "affine_grid_generator": 21, "amin": 36, "arange": 10, "argmax": 21, "as_strided": 2, "asin": 20,
        "bernoulli": 69, "binary_cross_entropy_with_logits": 44, "bitwise_not": 11, "bmm": 31, "cat": 41, "clone": 14,
        "contiguous": 13, "copy_": 11, "cos": 28, "cosh": 14, "cumsum": 35, "diff": 31, "div": 49, "div_": 33,
        "embedding": 14, "empty_strided": 3, "eq": 17, "erfc": 23, "expand": 4, "expand_as": 2, "exponential_": 18,
        "fill_": 17, "floor": 14, "floor_divide": 17, "fmax": 18, "full": 7, "gather": 15, "gt": 22, "hardsigmoid": 13,
        "heaviside": 20, "huber_loss": 17, "i0": 21, "im2col": 30, "index": 23, "index_put_": 38, "index_select": 15,
        "item": 5, "le": 24, "linear": 36, "log10": 17, "log_sigmoid_backward": 11, "logaddexp2": 21, "logit": 15,
        "margin_ranking_loss": 16, "masked_fill_": 21, "matmul": 29, "mean": 21, "mish": 14, "mish_backward": 12,
        "mm": 26, "mul": 27, "narrow": 3, "neg": 9, "new_empty_strided": 3, "new_ones": 10, "ones_like": 7,
        "pairwise_distance": 18, "poisson": 56, "polygamma": 67, "pow": 74, "prelu": 12,
        "reflection_pad1d_backward": 16, "renorm": 17, "reshape": 6, "resolve_conj": 6, "resolve_neg": 6, "rot90": 17,
        "rrelu_with_noise": 31, "rrelu_with_noise_backward": 20, "rsqrt": 13, "rsub": 27, "scalar_tensor": 5,
        "scatter": 30, "select": 3, "select_backward": 14, "sgn": 14, "silu": 11, "sin": 25,
        "smooth_l1_loss_backward": 17, "soft_margin_loss": 18, "softmax": 15, "softplus_backward": 16, "sort": 115,
        "special_entr": 25, "square": 15, "stack": 29, "sub": 25, "sum": 27, "t": 4, "to": 14, "unsafe_split": 6,
        "unsafe_split_with_sizes": 6, "unsqueeze": 4, "upsample_nearest2d_backward": 19, "zero_": 10, "zeros": 6,
        "zeros_like": 8,
    },
    "vllm": {
        "allspark_w8a16_gemm": 18, "apply_repetition_penalties_cuda": 8, "awq_gemm": 18, "awq_marlin_moe_repack": 21,
        "batched_moe_align_block_size": 11, "concat_and_cache_mla": 15, "convert_fp8": 16,
        "convert_vertical_slash_indexes": 20, "copy_blocks": 17, "copy_blocks_mla": 10, "cp_gather_cache": 11,
        "cp_gather_indexer_k_quant_cache": 12, "cutlass_pack_scale_fp8": 9, "cutlass_scaled_mm": 38,
        "cutlass_scaled_mm_azp": 29, "fused_add_rms_norm": 17, "fused_qk_norm_rope": 11,
        "gather_and_maybe_dequant_cache": 14, "ggml_dequantize": 13, "ggml_moe_a8": 58, "ggml_moe_a8_vec": 18,
        "ggml_mul_mat_a8": 51, "ggml_mul_mat_vec_a8": 24, "gptq_gemm": 23, "gptq_marlin_24_gemm": 25,
        "gptq_marlin_gemm": 138, "gptq_marlin_moe_repack": 20, "gptq_shuffle": 22, "grouped_topk": 18,
        "hadacore_transform": 18, "marlin_int4_fp8_preprocess": 15, "merge_attn_states": 21, "moe_align_block_size": 26,
        "moe_lora_align_block_size": 16, "moe_sum": 10, "paged_attention_v1": 36, "paged_attention_v2": 35,
        "permute_cols": 7, "reshape_and_cache": 13, "reshape_and_cache_flash": 14, "rms_norm": 16,
        "rms_norm_dynamic_per_token_quant": 20, "rms_norm_per_block_quant": 18, "rotary_embedding": 17,
        "scaled_fp8_quant": 34, "scaled_int8_quant": 19, "selective_scan_fwd": 84, "shuffle_rows": 7, "swap_blocks": 6,
        "topk_softmax": 20,
    },
    "cublas": {
        "cublasCcopy_v2": 11, "cublasCdotu_v2": 10, "cublasCgemmStridedBatched": 20, "cublasCgemmStridedBatched_64": 24,
        "cublasCgemm_v2": 24, "cublasCgemvBatched_64": 22, "cublasCgemvStridedBatched": 16, "cublasCgemv_v2": 19,
        "cublasCgeru_v2": 14, "cublasCsymm_v2": 19, "cublasCsymv_v2": 21, "cublasCsyrkEx": 22, "cublasDasum_v2": 9,
        "cublasDaxpy_v2": 11, "cublasDcopy_v2": 10, "cublasDgemmBatched": 18, "cublasDgemmStridedBatched": 18,
        "cublasDgemmStridedBatched_64": 17, "cublasDgemvBatched": 19, "cublasDgemvStridedBatched": 18,
        "cublasDgemv_v2": 20, "cublasDsbmv_v2": 17, "cublasDsyr2_v2": 12, "cublasDtrsmBatched": 58,
        "cublasHgemmBatched": 21, "cublasHgemmStridedBatched": 17, "cublasSaxpy_v2": 14, "cublasSdgmm": 14,
        "cublasSdot_v2": 13, "cublasSgeam": 12, "cublasSgemmBatched_64": 15, "cublasSgemmEx": 17,
        "cublasSgemmStridedBatched": 16, "cublasSgemm_v2": 14, "cublasSgemvBatched": 20,
        "cublasSgemvStridedBatched": 13, "cublasSger_v2": 11, "cublasSscal_v2": 11, "cublasSsyrk_v2": 21,
        "cublasStbmv_v2": 14, "cublasStrsm_v2": 35, "cublasStrsv_v2": 46, "cublasZdotc_v2": 12,
        "cublasZgemmBatched": 15, "cublasZgemmStridedBatched": 17, "cublasZgemvBatched": 27,
        "cublasZgemvStridedBatched": 25, "cublasZgerc_v2": 13, "cublasZswap_v2": 12, "cublasZtrsmBatched": 137,
    },
}  # fmt: skip
"""Seconds without waiting, by source and name, of one model's Triton kernels on NVIDIA H200s with 12 slots each,
2026-11-24, or 2026-11-22 where none was correct. They order a run; nothing else depends on them.
"""
