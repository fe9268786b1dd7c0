"""How long judging a kernel of each shipped problem took, where nothing is known of this device yet."""

from __future__ import annotations

from typing import Final

USUAL_DURATIONS: Final[dict[str, dict[str, int]]] = {
    "aten": {
        "_index_put_impl_": 43, "_local_scalar_dense": 15, "_softmax": 33, "_to_copy": 28, "acosh": 28, "add": 24,
        "add_": 31, "affine_grid_generator": 33, "amin": 36, "arange": 21, "argmax": 33, "as_strided": 15, "asin": 30,
        "bernoulli": 78, "binary_cross_entropy_with_logits": 44, "bitwise_not": 23, "bmm": 36, "cat": 41, "clone": 19,
        "contiguous": 27, "copy_": 25, "cos": 36, "cosh": 25, "cumsum": 35, "diff": 16, "div": 24, "div_": 13,
        "embedding": 14, "empty_strided": 1, "eq": 14, "erfc": 22, "expand": 2, "expand_as": 2, "exponential_": 28,
        "fill_": 17, "floor": 13, "floor_divide": 17, "fmax": 18, "full": 7, "gather": 13, "gt": 22, "hardsigmoid": 12,
        "heaviside": 16, "huber_loss": 17, "i0": 14, "im2col": 27, "index": 20, "index_put_": 35, "index_select": 14,
        "item": 4, "le": 10, "linear": 16, "log10": 14, "log_sigmoid_backward": 11, "logaddexp2": 19, "logit": 15,
        "margin_ranking_loss": 16, "masked_fill_": 20, "matmul": 29, "mean": 21, "mish": 16, "mish_backward": 11,
        "mm": 20, "mul": 24, "narrow": 1, "neg": 5, "new_empty_strided": 2, "new_ones": 6, "ones_like": 7,
        "pairwise_distance": 18, "poisson": 45, "polygamma": 28, "pow": 37, "prelu": 11,
        "reflection_pad1d_backward": 7, "renorm": 17, "reshape": 4, "resolve_conj": 4, "resolve_neg": 4, "rot90": 17,
        "rrelu_with_noise": 31, "rrelu_with_noise_backward": 14, "rsqrt": 11, "rsub": 14, "scalar_tensor": 3,
        "scatter": 11, "select": 2, "select_backward": 15, "sgn": 13, "silu": 7, "sin": 18,
        "smooth_l1_loss_backward": 12, "soft_margin_loss": 18, "softmax": 15, "softplus_backward": 10, "sort": 89,
        "special_entr": 17, "square": 9, "stack": 15, "sub": 20, "sum": 24, "t": 4, "to": 9, "unsafe_split": 7,
        "unsafe_split_with_sizes": 6, "unsqueeze": 4, "upsample_nearest2d_backward": 19, "zero_": 6, "zeros": 6,
        "zeros_like": 5,
    },
    "vllm": {
        "allspark_w8a16_gemm": 16, "apply_repetition_penalties_cuda": 8, "awq_gemm": 14, "awq_marlin_moe_repack": 13,
        "batched_moe_align_block_size": 8, "concat_and_cache_mla": 8, "convert_fp8": 12,
        "convert_vertical_slash_indexes": 21, "copy_blocks": 17, "copy_blocks_mla": 10, "cp_gather_cache": 7,
        "cp_gather_indexer_k_quant_cache": 7, "cutlass_pack_scale_fp8": 7, "cutlass_scaled_mm": 26,
        "cutlass_scaled_mm_azp": 17, "fused_add_rms_norm": 12, "fused_qk_norm_rope": 11,
        "gather_and_maybe_dequant_cache": 9, "ggml_dequantize": 10, "ggml_moe_a8": 42, "ggml_moe_a8_vec": 18,
        "ggml_mul_mat_a8": 22, "ggml_mul_mat_vec_a8": 17, "gptq_gemm": 21, "gptq_marlin_24_gemm": 18,
        "gptq_marlin_gemm": 92, "gptq_marlin_moe_repack": 11, "gptq_shuffle": 22, "grouped_topk": 18,
        "hadacore_transform": 18, "marlin_int4_fp8_preprocess": 9, "merge_attn_states": 17, "moe_align_block_size": 26,
        "moe_lora_align_block_size": 16, "moe_sum": 10, "paged_attention_v1": 36, "paged_attention_v2": 35,
        "permute_cols": 9, "reshape_and_cache": 17, "reshape_and_cache_flash": 14, "rms_norm": 11,
        "rms_norm_dynamic_per_token_quant": 14, "rms_norm_per_block_quant": 20, "rotary_embedding": 19,
        "scaled_fp8_quant": 34, "scaled_int8_quant": 23, "selective_scan_fwd": 34, "shuffle_rows": 7, "swap_blocks": 6,
        "topk_softmax": 19,
    },
    "cublas": {
        "cublasCcopy_v2": 8, "cublasCdotu_v2": 9, "cublasCgemmStridedBatched": 10, "cublasCgemmStridedBatched_64": 9,
        "cublasCgemm_v2": 10, "cublasCgemvBatched_64": 9, "cublasCgemvStridedBatched": 10, "cublasCgemv_v2": 10,
        "cublasCgeru_v2": 8, "cublasCsymm_v2": 10, "cublasCsymv_v2": 18, "cublasCsyrkEx": 17, "cublasDasum_v2": 8,
        "cublasDaxpy_v2": 8, "cublasDcopy_v2": 9, "cublasDgemmBatched": 18, "cublasDgemmStridedBatched": 18,
        "cublasDgemmStridedBatched_64": 17, "cublasDgemvBatched": 19, "cublasDgemvStridedBatched": 16,
        "cublasDgemv_v2": 16, "cublasDsbmv_v2": 16, "cublasDsyr2_v2": 7, "cublasDtrsmBatched": 28,
        "cublasHgemmBatched": 21, "cublasHgemmStridedBatched": 17, "cublasSaxpy_v2": 7, "cublasSdgmm": 9,
        "cublasSdot_v2": 7, "cublasSgeam": 10, "cublasSgemmBatched_64": 15, "cublasSgemmEx": 17,
        "cublasSgemmStridedBatched": 16, "cublasSgemm_v2": 14, "cublasSgemvBatched": 14,
        "cublasSgemvStridedBatched": 13, "cublasSger_v2": 11, "cublasSscal_v2": 7, "cublasSsyrk_v2": 13,
        "cublasStbmv_v2": 9, "cublasStrsm_v2": 35, "cublasStrsv_v2": 39, "cublasZdotc_v2": 6, "cublasZgemmBatched": 15,
        "cublasZgemmStridedBatched": 13, "cublasZgemvBatched": 19, "cublasZgemvStridedBatched": 17,
        "cublasZgerc_v2": 6, "cublasZswap_v2": 7, "cublasZtrsmBatched": 81,
    },
}  # fmt: skip
"""Seconds without waiting, by source and name, of one model's Triton kernels on NVIDIA H200s with 12 slots each,
2026-11-22. They order a run; nothing else depends on them.
"""
