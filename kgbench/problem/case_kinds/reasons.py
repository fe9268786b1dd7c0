"""Why a problem has no case of a kind: one table, each row for all problems of which it is true."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from kgbench.core.kinds import Kind
from kgbench.problem.case_kinds.facts import FLAGS, NUMBERS, Facts
from kgbench.problem.case_kinds.kinds import CACHES
from kgbench.problem.model import Access, PassedAs

VALUES: Final = ("nan", "denormal", "large", "small", "close")
"""Kinds about what stands in a floating-point tensor."""
LAYOUT: Final = ("gaps", "expanded", "offset", "2³¹")
"""Kinds about how a tensor lies in memory."""
ELEMENTWISE: Final = ("elementwise", "elementwise-backward", "loss", "fill", "data-movement")
"""Categories in which an element follows from those at the same place."""
SIZES: Final = ("grid", "2³¹")
"""Kinds of which a family has one call."""


@dataclass(frozen=True)
class Reason:
    """Why some kinds do not apply."""

    kinds: tuple[str, ...]
    words: str
    holds: Callable[[Facts], bool]


def _only(*ids: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.problem.id in ids


def _aten(*names: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.problem.source == "aten" and facts.problem.name in names


def _vllm(*names: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.problem.source == "vllm" and facts.problem.name in names


def _kind(*kinds: Kind) -> Callable[[Facts], bool]:
    return lambda facts: facts.problem.kind in kinds


def _category(*names: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.problem.category in names


def _is_vllm(facts: Facts) -> bool:
    return facts.problem.source == "vllm"


def _optional(facts: Facts) -> Iterable[str]:
    return (name for name in facts.values if name.endswith("| None"))


def _takes_results(facts: Facts) -> bool:
    """Whether a call gives a tensor with gaps for the result."""
    return any(spec.access == Access.WRITE and not spec.contiguous for spec in facts.specs)


def _most_read(facts: Facts) -> int:
    """Tensors that one call reads, at most."""
    return max(sum(spec.access != Access.WRITE for spec in bound.specs) for _, bound in facts.calls)


def _is_no(*categories: str) -> Callable[[Facts], bool]:
    return lambda facts: facts.problem.category not in categories


def _counts_once(facts: Facts) -> bool:
    """Whether one count alone may become a dimension of a grid, or another family has the calls."""
    ggml = facts.problem.name.startswith("ggml_")
    return not (facts.problem.source == "vllm" and (ggml or facts.problem.category in COUNTED))


def _computes_complex(facts: Facts) -> bool:
    moves = facts.problem.name in (*MOVED, *SHAPED) or facts.problem.kind == Kind.VIEW
    return not moves and any(drawn.spec.dtype.startswith("complex") for drawn in facts.drawn)


def _sums_complex(facts: Facts) -> bool:
    return facts.is_blas or facts.problem.category in SUMMED or facts.problem.name in ADDED


def _zero_for_subnormals(facts: Facts) -> bool:
    return all(overload.subnormals_may_be_zero for overload, _ in facts.calls)


MOVED: Final = (
    "_local_scalar_dense", "_to_copy", "cat", "clone", "contiguous", "copy_", "embedding", "gather", "im2col", "index",
    "index_select", "item", "rot90", "stack", "to", "reflection_pad1d_backward", "select_backward", "scatter", "fill_",
    "masked_fill_", "zero_", "index_put_", "_index_put_impl_",
)  # fmt: skip
"""Operators of ATen that put elements elsewhere; where some of them add, large numbers add no more than others."""
CONTIGUOUS: Final = (
    "allspark_w8a16_gemm", "apply_repetition_penalties_cuda", "awq_gemm", "awq_marlin_moe_repack",
    "batched_moe_align_block_size", "convert_fp8", "convert_vertical_slash_indexes", "copy_blocks", "copy_blocks_mla",
    "cp_gather_cache", "cp_gather_indexer_k_quant_cache", "cutlass_pack_scale_fp8", "fused_add_rms_norm",
    "fused_qk_norm_rope", "gather_and_maybe_dequant_cache", "ggml_dequantize", "ggml_moe_a8", "ggml_moe_a8_vec",
    "ggml_mul_mat_a8", "ggml_mul_mat_vec_a8", "gptq_gemm", "gptq_marlin_24_gemm", "gptq_marlin_gemm",
    "gptq_marlin_moe_repack", "gptq_shuffle", "grouped_topk", "hadacore_transform", "marlin_int4_fp8_preprocess",
    "merge_attn_states", "moe_align_block_size", "moe_lora_align_block_size", "moe_sum", "paged_attention_v1",
    "paged_attention_v2", "permute_cols", "reshape_and_cache", "rms_norm", "rms_norm_dynamic_per_token_quant",
    "rms_norm_per_block_quant", "scaled_int8_quant", "shuffle_rows", "swap_blocks", "topk_softmax",
)  # fmt: skip
"""Operators of vLLM whose problem's text asks for contiguous tensors."""
MOVED_BY_VLLM: Final = (
    "copy_blocks", "copy_blocks_mla", "cp_gather_cache", "permute_cols", "shuffle_rows", "swap_blocks",
    "awq_marlin_moe_repack", "gptq_marlin_moe_repack", "gptq_shuffle", "marlin_int4_fp8_preprocess",
    "cutlass_pack_scale_fp8",
)  # fmt: skip
"""Operators of vLLM that put bytes elsewhere."""
ADDED: Final = ("add", "add_", "rsub", "sub", "neg", "eq", "resolve_conj", "resolve_neg")
"""Operators of ATen that add, compare or negate parts, each by itself."""
SHAPED: Final = ("new_empty_strided", "new_ones", "ones_like", "zeros_like")
"""Operators of which a tensor says shape and type alone."""
FORMATS: Final = (
    "allspark_w8a16_gemm", "awq_gemm", "awq_marlin_moe_repack", "gptq_gemm", "gptq_marlin_24_gemm", "gptq_marlin_gemm",
    "gptq_marlin_moe_repack", "gptq_shuffle", "ggml_dequantize", "ggml_mul_mat_a8", "ggml_mul_mat_vec_a8",
    "hadacore_transform", "convert_fp8", "copy_blocks", "copy_blocks_mla", "concat_and_cache_mla", "reshape_and_cache",
    "reshape_and_cache_flash", "swap_blocks", "grouped_topk", "permute_cols",
)  # fmt: skip
"""Operators of vLLM whose sizes are multiples of a block."""
INDICES: Final = (
    "batched_moe_align_block_size", "concat_and_cache_mla", "convert_vertical_slash_indexes", "fused_qk_norm_rope",
    "gather_and_maybe_dequant_cache", "moe_align_block_size", "moe_lora_align_block_size", "paged_attention_v1",
    "paged_attention_v2", "permute_cols", "reshape_and_cache", "reshape_and_cache_flash", "rotary_embedding",
    "selective_scan_fwd", "shuffle_rows",
)  # fmt: skip
"""Operators of vLLM whose whole numbers are places, lengths and experts."""
ONE_DTYPE: Final = (
    "binary_cross_entropy_with_logits", "heaviside", "huber_loss", "log_sigmoid_backward", "margin_ranking_loss",
    "mish_backward", "prelu", "reflection_pad1d_backward", "rrelu_with_noise", "rrelu_with_noise_backward",
    "smooth_l1_loss_backward", "soft_margin_loss", "softplus_backward",
)  # fmt: skip
"""Operators of ATen whose problem's text says that all tensors have one dtype."""
FINITE: Final = (
    "ggml_moe_a8", "ggml_moe_a8_vec", "ggml_mul_mat_a8", "ggml_mul_mat_vec_a8", "grouped_topk",
    "rms_norm_dynamic_per_token_quant", "rms_norm_per_block_quant", "scaled_fp8_quant", "scaled_int8_quant",
    "topk_softmax",
)  # fmt: skip
"""Operators of vLLM whose problem's text says that all numbers are finite."""
CONVERTED: Final = (
    "apply_repetition_penalties_cuda", "concat_and_cache_mla", "convert_fp8", "gather_and_maybe_dequant_cache",
    "reshape_and_cache", "reshape_and_cache_flash",
)  # fmt: skip
"""Operators of vLLM that scale or convert elements one by one."""
PINNED: Final = (
    "arange", "empty_strided", "full", "new_empty_strided", "new_ones", "ones_like", "scalar_tensor", "zeros",
    "zeros_like",
)  # fmt: skip
"""Operators of ATen that make a tensor and take pin_memory."""
COUNTED: Final = ("attention", "moe", "sparse-attention-index", "ssm-scan")
"""Categories of vLLM of which each count has a call of its own; ggml's products have, too."""
SUMMED: Final = (
    "attention", "gemm", "gemv", "ger", "level1", "moe", "norm", "norm+quantization", "norm+rope", "quantization",
    "quantized-gemm", "quantized-moe-gemm", "reduction", "scan", "softmax", "sort", "ssm-scan", "symmetric",
    "triangular",
)  # fmt: skip
"""Categories in which sums, or loops, go over a dimension."""
NUMBERS_KINDS: Final = ("number 0", "number < 0", "number large", "number small")

REASONS: Final = (
    Reason(("nan alone",), "every part of an operand is read: no triangle, no band", lambda facts: not (
        facts.is_blas and facts.problem.category in ("symmetric", "triangular", "rank-update"))),
    Reason(("nan alone",), "a triangle that is solved with is finite; right-hand sides hold NaN", _only(
        "cublas/cublasDtrsmBatched", "cublas/cublasStrsm_v2", "cublas/cublasStrsv_v2", "cublas/cublasZtrsmBatched")),
    Reason(("grid each",), "attention, GGUF, routing and scans of vLLM have it; others have one count", _counts_once),
    Reason(("grid each",), "65,536 partitions are 2²⁵ keys, of which judging does not fit a device", _vllm(
        "paged_attention_v2")),
    Reason(("2³¹ − 1",), "no sum over a dimension; still missing where a kernel rounds a count of blocks up",
           _is_no(*SUMMED)),
    Reason(("2³¹ − 1",), "2³¹ elements, their places and what judging takes do not fit a device", _aten("sort")),
    Reason(("2³¹ − 1",), "a row is a token's: the text bounds it, or one program takes longer for it than a call may",
           _is_vllm),
    Reason(("2³¹ − 1",), "so many rows are in routines of its kind that fit a device; to sum so many products for one "
           "element takes longer than a call may", _category("gemm", "gemv", "ger", "triangular", "symmetric")),
    Reason(("2³¹ − 1",), "two vectors of so many numbers do not fit, or each element stands for itself; the dot "
           "product has it", _category("level1")),
    Reason(("inc < −2²⁹",), "no increments", lambda facts: not any(name.startswith("inc") for name in facts.values)),
    Reason(("inc < −2²⁹",), "with a negative increment nothing is done", _only(
        "cublas/cublasDasum_v2", "cublas/cublasSscal_v2")),
    Reason(("step 2³¹",), "no product, of which a kernel goes through the terms in steps", _is_no(
        "gemm", "gemv", "quantized-gemm", "quantized-moe-gemm", "symmetric", "triangular")),
    Reason(("step 2³¹",), "all its matrices are padded alike, which together do not fit, or it has one vector",
           _category("symmetric", "triangular")),
    Reason(("step 2³¹",), "packed weights, whose rows are contiguous or fixed in form", _is_vllm),
    Reason(("out 2³¹",), "no argument takes the result of any strides: it is a new tensor, or the text fixes its form",
           lambda facts: facts.problem.source != "aten" or not _takes_results(facts)),
    Reason(("block 2³¹",), "no cache of blocks", _is_no(CACHES)),
    Reason(("block 2³¹",), "the text bounds an entry, or all its tensors share no dimension that can be sampled", _vllm(
        "concat_and_cache_mla", "cp_gather_cache", "cp_gather_indexer_k_quant_cache", "gather_and_maybe_dequant_cache",
        "reshape_and_cache")),
    Reason(("side 2²⁴",), "places are whole numbers", lambda facts: facts.problem.id not in (
        "aten/arange", "aten/affine_grid_generator", "aten/upsample_nearest2d_backward")),
    Reason(("side 2²⁴",), "PyTorch itself differs there from the text, which follows its answers for smaller sides",
           _aten("upsample_nearest2d_backward")),
    Reason(("outer",), "no element follows from a whole dimension", _is_no(
        "reduction", "scan", "sort", "softmax", "norm")),
    Reason(("outer",), "2³¹ elements, their places and what judging takes do not fit a device", _aten("sort")),
    Reason(("outer",), "a row is a token's", _is_vllm),
    Reason(("apart",), "no complex numbers are computed with", lambda facts: not _computes_complex(facts)),
    Reason(("apart",), "a sum or a product of parts: the error counts by the size of its largest term", _sums_complex),
    Reason(("apart",), "ill-conditioned near the poles of the logistic function, PyTorch itself is off there", _aten(
        "silu")),
    Reason(("rows 2³¹",), "no elementwise work", _is_no(*ELEMENTWISE)),
    Reason(("number 2³¹",), "no elementwise work of two tensors",
           lambda facts: facts.problem.category not in ELEMENTWISE or _most_read(facts) < 2),
    Reason(("number 2³¹",), "its second tensor has one number, or one for each channel, or elements change their rows",
           _aten("cat", "fill_", "prelu", "reflection_pad1d_backward", "stack")),
    Reason(("rows 2³¹",), "elements change their rows: a call of 2³¹ elements or offsets is there", _aten(
        "affine_grid_generator", "cat", "im2col", "reflection_pad1d_backward", "rot90", "stack",
        "upsample_nearest2d_backward")),
    Reason(
        ("empty", "one", "odd", "gaps", "expanded", "offset", *SIZES, "types"),
        "no argument is a tensor",
        lambda facts: not facts.specs,
    ),
    Reason((*VALUES, "equal", "ends", *LAYOUT), "no tensor is read", lambda facts: not facts.drawn),
    Reason(VALUES, "no floating-point tensor is read", lambda facts: not facts.takes_floats),
    Reason(("ends",), "no tensor of whole numbers is read", lambda facts: not facts.takes_whole),
    Reason(
        (*VALUES, "ends", "equal", "types", "odd", "one", "grid", "2³¹"),
        "a view touches no element; that it is one is proven by other values in its base",
        _kind(Kind.VIEW),
    ),
    Reason(
        ("empty", "odd", "gaps", "expanded", *SIZES),
        "the tensor holds one element",
        _aten("item", "_local_scalar_dense"),
    ),
    Reason(
        (*VALUES, "ends", "equal", "types", "expanded", "offset", *SIZES),
        "the tensor says shape and type, no element of it is read",
        _aten(*SHAPED),
    ),
    Reason(NUMBERS_KINDS, "no parameter is a number", lambda facts: not facts.parameters(NUMBERS)),
    Reason(("flags",), "no parameter is a flag", lambda facts: not facts.parameters(FLAGS)),
    Reason(("absent",), "no argument may be None", lambda facts: not any(True for _ in _optional(facts))),
    Reason(("types",), "the text says that all tensors have one dtype", _aten(*ONE_DTYPE)),
    Reason(("nan",), "the text says that no input holds NaN or infinity", _vllm(*FINITE)),
    Reason(("flags",), "pinned memory is the CPU's, and kernels are judged on one device", _aten(*PINNED)),
    Reason(("absent",), "pinned memory is the CPU's, and kernels are judged on one device", _aten(*PINNED, "_to_copy")),
    Reason(("close",), "elements are scaled one by one, whatever their neighbours are", _vllm(*CONVERTED)),
    Reason(("2³¹",), "all numbers of an output are tested together, never some rows", _kind(Kind.RANDOM)),
    Reason(("types",), "one tensor", lambda facts: all(len(bound.specs) < 2 for _, bound in facts.calls)),
    Reason(("types",), "one tensor is read", lambda facts: _most_read(facts) < 2),
    Reason(("types",), "ATen refuses factors of different types", _aten("bmm", "mm", "matmul", "linear")),
    Reason(("types",), "all matrices have the routine's type", lambda facts: facts.is_blas),
    Reason(("types",), "vLLM's kernel has one type for its tensors", _is_vllm),
    Reason(("expanded",), "cuBLAS takes no leading dimension below the number of rows", lambda facts: facts.is_blas),
    Reason(("expanded",), "what is written may not lie on itself", _aten("exponential_", "fill_", "zero_")),
    Reason(("empty",), "vLLM calls no operator with a size of 0, and the texts say so", _is_vllm),
    Reason(("gaps", "expanded", "offset"), "the text asks for contiguous tensors", _vllm(*CONTIGUOUS)),
    Reason(("expanded",), "no call of vLLM's has a stride of 0", _is_vllm),
    Reason(("one", "odd"), "sizes are multiples of the format's block", _vllm(*FORMATS)),
    Reason(
        ("grid",),
        "elements one by one: one dimension of a grid, which takes 2³¹ − 1 blocks",
        _category("elementwise", "elementwise-backward", "loss", "fill", "random", "creation", "level1"),
    ),
    Reason(
        ("offset",),
        "matrices lie behind pointers: gaps between them give each an address of its own",
        lambda facts: any(spec.passed == PassedAs.POINTERS for spec in facts.specs),
    ),
    Reason(
        ("denormal",), "the text lets a kernel take subnormal numbers for zeros", _zero_for_subnormals
    ),
    Reason(("2³¹",), "an output says its row, so that some rows alone cannot be judged", _vllm("topk_softmax")),
    Reason(("large", "small", "close", "equal"), "elements are moved, not computed with", _aten(*MOVED)),
    Reason((*VALUES, "equal"), "bytes are moved, not computed with", _vllm(*MOVED_BY_VLLM)),
    Reason(("ends",), "whole numbers are places, lengths or experts, which have ends of their own", _vllm(*INDICES)),
    Reason(
        ("close",),
        "sums of products: the error's scale allows for what cancels, exact whole numbers show what is lost",
        lambda facts: facts.is_blas or facts.problem.category in ("gemm", "quantized-gemm", "quantized-moe-gemm"),
    ),
    Reason(("small", "large", "equal"), "elements are moved, not computed with", _only(
        "cublas/cublasCcopy_v2", "cublas/cublasDcopy_v2", "cublas/cublasZswap_v2")),
    Reason(("large", "small", "close"), "chances lie between 0 and 1, and what is written over is not read", _aten(
        "bernoulli", "exponential_")),
    Reason(("nan", "denormal"), "a rate is finite; where it is not, torch refuses it", _aten("poisson")),
    Reason(("number 0", "number < 0", "number large"), "a rate is positive and finite, a chance between 0 and 1", _aten(
        "exponential_", "bernoulli")),
    Reason(("number 0", "number < 0"), "the text says that the number is positive", _only(
        "aten/huber_loss", "vllm/convert_fp8")),
    Reason(("number 0", "number < 0"), "a scale that is given is positive, since the size that it gives is", _aten(
        "upsample_nearest2d_backward")),
    Reason(("number < 0",), "the text says that no number is negative", _aten(
        "renorm", "rrelu_with_noise_backward", "smooth_l1_loss_backward")),
    Reason(("flags",), "the text says which value a flag has, and no other is allowed", _only(
        "vllm/allspark_w8a16_gemm", "vllm/gptq_marlin_gemm", "vllm/hadacore_transform", "cublas/cublasCsyrkEx")),
    Reason(("absent",), "the text says which arguments are always None", _vllm("gptq_marlin_gemm")),
    Reason(("grid",), "the matrix is square: 65,536² numbers and what judging takes do not fit a device", _only(
        "cublas/cublasDsyr2_v2")),
    Reason(("empty", "odd"), "the tensor has no dimensions", _aten("scalar_tensor")),
    Reason(("one",), "a map has six or twelve numbers", _aten("affine_grid_generator")),
    Reason(("ends",), "whole numbers are places, lengths or experts, which have ends of their own", _aten("embedding")),
    Reason(("equal",), "what is written over is not read", _aten("exponential_")),
    Reason(("number 0", "number < 0", "number large"), "an epsilon is positive and small", _vllm(
        "rms_norm", "fused_add_rms_norm", "fused_qk_norm_rope", "rms_norm_dynamic_per_token_quant",
        "rms_norm_per_block_quant")),
)  # fmt: skip
"""In order; the first that holds is told."""


def reason(kind: str, facts: Facts) -> str:
    """Why the kind does not apply to a problem; empty where nobody knows a reason."""
    return next((each.words for each in REASONS if kind in each.kinds and each.holds(facts)), "")
