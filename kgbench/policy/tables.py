"""Data of the policy's rules: groups of operators, and patterns of the names of libraries' kernels."""

from __future__ import annotations

import re
from typing import Final

from kgbench.core.kinds import Kind

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "metadata": (
        "_has_compatible_shallow_copy_type", "_has_same_storage_numel", "_is_zerotensor", "_version", "can_cast",
        "dense_dim", "dim", "element_size", "get_device", "is_complex", "is_conj", "is_contiguous", "is_floating_point",
        "is_inference", "is_leaf", "is_neg", "is_non_overlapping_and_dense", "is_pinned", "is_same_size", "is_set_to",
        "is_signed", "is_strides_like_format", "numel", "output_nr", "promote_types", "record_stream", "result_type",
        "retains_grad", "size", "sparse_dim", "storage_offset", "stride", "sym_is_contiguous", "sym_numel", "sym_size",
        "sym_storage_offset", "sym_stride",
    ),
    "allocation": (
        "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_",
        "resize_as_",
    ),
    "fills": (
        "arange", "fill", "fill_", "full", "full_like", "new_full", "new_ones", "new_zeros", "ones", "ones_like",
        "scalar_tensor", "tensor", "zero", "zero_", "zeros", "zeros_like",
    ),
    "views": (
        "_reshape_alias", "_unsafe_view", "alias", "as_strided", "as_strided_", "broadcast_tensors", "broadcast_to",
        "chunk", "detach", "detach_", "diagonal", "dsplit", "expand", "expand_as", "flatten", "hsplit", "imag",
        "lift_fresh", "linalg_diagonal", "mT", "moveaxis", "movedim", "narrow", "numpy_T", "permute", "positive",
        "ravel", "real", "reshape", "reshape_as", "resolve_conj", "resolve_neg", "select", "set_", "slice",
        "slice_inverse", "split", "split_with_sizes", "squeeze", "squeeze_", "swapaxes", "swapaxes_", "swapdims",
        "swapdims_", "t", "t_", "tensor_split", "transpose", "transpose_", "unbind", "unflatten", "unfold",
        "unsqueeze", "unsqueeze_", "view", "view_as", "view_as_complex", "view_as_real", "vsplit",
    ),
    "lazy bits": (
        "_conj", "_conj_copy", "_neg_view", "_neg_view_copy", "adjoint", "conj", "mH", "matrix_H",
    ),
    "copies": (
        "_copy_from", "_copy_from_and_resize", "_reshape_alias_copy", "_reshape_copy",
        "_to_copy", "alias_copy", "as_strided_copy", "as_tensor", "clone", "constant_pad_nd", "contiguous", "copy",
        "copy_", "cpu", "cuda", "detach_copy", "diagonal_copy", "expand_copy", "lift_fresh_copy", "narrow_copy", "pad",
        "permute_copy", "pin_memory", "select_copy", "slice_copy", "split_copy", "split_with_sizes_copy",
        "squeeze_copy", "t_copy", "to", "transpose_copy", "type_as", "unbind_copy", "unfold_copy", "unsqueeze_copy",
        "view_as_complex_copy", "view_as_real_copy", "view_copy",
    ),
    "host": ("_local_scalar_dense", "is_nonzero", "item"),
}  # fmt: skip
"""ATen operators that compute nothing, grouped by what they do. An operator in no group computes."""

KIND_GROUPS: Final[dict[Kind, tuple[str, ...]]] = {
    Kind.COMPUTE: ("metadata", "allocation", "fills", "views", "copies", "host"),
    Kind.RANDOM: ("metadata", "allocation", "fills", "views", "copies", "host"),
    Kind.CREATION: ("metadata", "allocation", "fills", "views"),
    Kind.VIEW: ("metadata", "allocation", "views", "lazy bits"),
    Kind.SYNC: ("metadata", "allocation", "views", "copies", "host"),
}
"""Groups of ATen operators that a candidate may call, by the problem's kind."""

_ANY_MEMORY: Final = "memory, views, fills, and copies to another dtype, layout or device"
KIND_WORDS: Final[dict[Kind, str]] = {
    Kind.COMPUTE: f"{_ANY_MEMORY}, but nothing that computes",
    Kind.RANDOM: f"{_ANY_MEMORY}, but nothing that computes or draws",
    Kind.CREATION: "memory, views and fills",
    Kind.VIEW: "memory and other views, but no copy",
    Kind.SYNC: "copies to the host, memory and views",
}
"""Text that says which operators are allowed, by the problem's kind."""

WORK: Final = ("fills", "copies")
"""Groups whose operators can replace each other. A problem whose operator is in one may use none of that group."""

ALIASES: Final[dict[str, str]] = {
    "broadcast_to": "expand", "expand_as": "expand", "item": "_local_scalar_dense", "moveaxis": "movedim",
    "numpy_T": "permute", "ravel": "flatten", "reshape_as": "reshape", "swapaxes": "transpose", "swapdims": "transpose",
    "tensor": "scalar_tensor", "view_as": "view", "zero": "zeros", "_neg_view": "neg",
}  # fmt: skip
"""The operator that each of these is judged as: it is another name for it, or defers its work to it."""

NAMESPACES: Final[dict[str, str]] = {
    **dict.fromkeys(("_C", "_C_cache_ops", "_C_custom_ar", "_C_cuda_utils", "_moe_C", "_rocm_C", "vllm"), "vLLM's"),
    **dict.fromkeys(("_vllm_fa2_C", "_vllm_fa3_C", "flash_attn", "flash_attn_3"), "FlashAttention's"),
    **dict.fromkeys(("mkl", "mkldnn", "mkldnn_prepacked", "onednn", "prims", "quantized", "sparse"), "PyTorch's"),
    **dict.fromkeys(("_native", "_quantized", "_test", "prepacked", "quantization", "static_runtime"), "PyTorch's"),
    **dict.fromkeys(("c10d", "_c10d_functional", "_c10d_functional_autograd", "_dtensor", "symm_mem"), "PyTorch's"),
    **dict.fromkeys(("inductor", "inductor_prims", "rngprims", "debugprims", "higher_order"), "PyTorch's compiler's"),
    "fbgemm": "FBGEMM's",
    "flag_gems": "FlagGems'",
    "flashinfer": "FlashInfer's",
    "liger_kernel": "Liger's",
    "sgl_kernel": "SGLang's",
    "torchao": "torchao's",
    "torchvision": "torchvision's",
    "xformers": "xFormers'",
    "xformers_flash": "xFormers'",
}
"""Owner of each namespace of library operators. Any other namespace is the candidate's; its calls are traced, too."""

MODULES: Final[dict[str, str]] = {
    "torch.compile": "PyTorch's compiler writes the kernel then",
    "torch._dynamo": "PyTorch's compiler writes the kernel then",
    "torch._inductor": "PyTorch's compiler writes the kernel then",
    "torch.jit.script": "PyTorch's compiler writes the kernel then",
    "torch.jit.trace": "PyTorch's compiler writes the kernel then",
    "torch.nn": "PyTorch's own kernels do the work then",
    "torch.fft": "PyTorch's own kernels do the work then",
    "torch.linalg": "PyTorch's own kernels do the work then",
    "torch.special": "PyTorch's own kernels do the work then",
    "torch.sparse": "PyTorch's own kernels do the work then",
    "torch._C._nn": "PyTorch's own kernels do the work then",
    "torch._refs": "PyTorch's own kernels do the work then",
    "cupy.cublas": "cuBLAS does the work then",
    "cupy.cudnn": "cuDNN does the work then",
    "cupy.dot": "cuBLAS does the work then",
    "cupy.einsum": "cuBLAS does the work then",
    "cupy.linalg": "cuBLAS and cuSOLVER do the work then",
    "cupy.matmul": "cuBLAS does the work then",
    "cupy.tensordot": "cuBLAS does the work then",
    "cupyx.scipy": "a library does the work then",
    "cupy_backends": "a library does the work then",
    "nvmath": "a library does the work then",
    "numpy.dot": "the host does the work then",
    "numpy.einsum": "the host does the work then",
    "numpy.linalg": "the host does the work then",
    "numpy.matmul": "the host does the work then",
    "scipy": "the host does the work then",
    "vllm": "vLLM's kernels do the work then",
    "flag_gems": "FlagGems' kernels do the work then",
    "flag_gems.utils": "",  # launchers and code generators for a candidate's own kernels
    "liger_kernel": "Liger's kernels do the work then",
    "flashinfer": "FlashInfer's kernels do the work then",
    "flash_attn": "FlashAttention's kernels do the work then",
    "sgl_kernel": "SGLang's kernels do the work then",
    "transformer_engine": "Transformer Engine's kernels do the work then",
    "xformers": "xFormers' kernels do the work then",
    "kgbench": "it is what judges the kernel",
}
"""Python functions and modules that no candidate may call, with the reason. The longest match decides. An empty reason
means that it may be called."""

MODULE_EXCEPTIONS: Final[dict[str, str]] = {
    "torch.nn.functional.pad": "constant_pad_nd",
    "torch.nn.Parameter": "detach",
    "torch.nn.parameter": "detach",
}
"""Names inside ``MODULES`` that are judged as the ATen operator given."""

PLAIN: Final = (
    "asarray", "autocast", "device", "dtype", "enable_grad", "finfo", "from_dlpack", "from_numpy", "frombuffer",
    "get_default_device", "get_default_dtype", "get_device_module", "iinfo", "inference_mode", "initial_seed",
    "is_grad_enabled", "is_storage", "is_tensor", "layout", "load", "manual_seed", "memory_format", "no_grad", "seed",
    "set_default_device", "set_default_dtype", "set_float32_matmul_precision", "set_grad_enabled", "set_num_threads",
    "set_printoptions", "to_dlpack", "typename", "broadcast_shapes", "is_deterministic_algorithms_warn_only_enabled",
    "are_deterministic_algorithms_enabled", "use_deterministic_algorithms", "get_num_threads", "get_rng_state",
)  # fmt: skip
"""Functions of the module ``torch`` that are not operators and compute nothing."""

METHODS: Final = (
    "abs", "add", "add_", "addbmm", "addcdiv", "addcmul", "addmm", "addmm_", "addmv", "addr", "amax", "amin", "argmax",
    "argmin", "argsort", "baddbmm", "bmm", "ceil", "clamp", "clamp_", "clamp_max", "clamp_min", "cos", "cross",
    "cummax", "cumprod", "cumsum", "div", "div_", "dot", "erf", "exp", "exp2", "exp_", "expm1", "floor",
    "fmod",
    "gather", "ger", "index_add", "index_add_", "index_copy_", "index_fill_", "index_put_", "index_select", "inner",
    "isinf", "isnan", "kthvalue", "lerp", "log", "log1p", "log2", "log_softmax", "logsumexp", "masked_fill",
    "masked_fill_", "masked_scatter_", "masked_select", "matmul", "maximum", "mean", "median", "minimum", "mm", "mul",
    "mul_", "mv", "nan_to_num", "neg", "nonzero", "norm", "outer", "pow", "prod", "reciprocal", "relu", "relu_",
    "remainder", "repeat_interleave", "roll", "rsqrt", "rsqrt_", "scatter", "scatter_", "scatter_add", "scatter_add_",
    "scatter_reduce_", "sigmoid", "sign", "sin", "softmax", "sqrt", "sqrt_", "square", "std", "sub", "sub_", "sum",
    "take_along_dim", "tan", "tanh", "topk", "tril", "triu", "trunc", "var", "where",
)  # fmt: skip
"""Tensor methods that compute and whose names are rarely methods of other types."""

KERNELS: Final[tuple[tuple[str, str], ...]] = (
    (r"\bat::native::|\bat::cuda::|\bat_cuda_detail::|\bc10::cuda::", "PyTorch's"),
    (
        r"^void \(anonymous namespace\)::(?:softmax_warp_|elementwise_kernel_with_index<|cunn_|CatArrayBatched)",
        "PyTorch's",
    ),
    (r"^triton_(?:poi|red|per|tem|for|mm|split_scan|unk)_(?:fused_|\d)", "PyTorch's compiler's"),
    (r"_cudnn(?:_\w+)?$|\bcudnn::|^cudnn_|^cudnn[A-Z]|\bcask_cudnn", "cuDNN's"),
    (
        r"_cublas(?:_\w+)?$|\bcublas(?:Lt)?::|\bcublas(?:Gemv|Dot|Trsm|Trmm|Sy|He|Ger|Scal|Axpy|Copy|Nrm2|Asum|Rot)\w*"
        r"|^nvjet_|^sm\d+_xmma_|\bcutlass_\d+_(?:tensorop|simt|wmma)_|^(?:maxwell|volta|turing|ampere|hopper)_\w*gemm"
        r"|\binternal::gemvx::|\bgemmk1_kernel|\bgemv2[NT]_kernel|\bgemvNSP_kernel|\bsplitKreduce_kernel",
        "cuBLAS's",
    ),
    (r"\bcusparse::|\bcusparse[A-Z]", "cuSPARSE's"),
    (r"\bcusolver|^void (?:getrf|getri|potrf|geqrf|syevj|gesvd)\w*<|^xxtrf4_|^void kernel_trsm_[lr]_", "cuSOLVER's"),
    (r"^void (?:vector|regular|composite|tile)_fft", "cuFFT's"),
    (r"\bvllm::", "vLLM's"),
    (r"\bflash::flash_|\bFlashAttn\w*<|\bcutlass::device_kernel<flash::", "FlashAttention's"),
    (r"\bflashinfer::", "FlashInfer's"),
    (r"\bfbgemm_gpu::|\bfbgemm::", "FBGEMM's"),
    (r"\bdeep_gemm::", "DeepGEMM's"),
    (r"\btransformer_engine::", "Transformer Engine's"),
    (r"^cupy_(?!copy|fill|arange|RawKernel)\w+__", "CuPy's"),
)
"""Patterns of the names of library kernels, with the owner; the first match decides. A candidate's kernel with such
a name counts as the library's.
"""

HARMLESS_KERNELS: Final = re.compile(
    r"FillFunctor|direct_copy_kernel|float(?:16|32|8)?_copy_kernel|bfloat16_copy|float8_copy|CatArrayBatchedCopy|\barange_cuda"
    r"|copy_device_to_device|conj_kernel|neg_conj"
)
"""Matches PyTorch kernels that only fill or copy. Used in a CUDA graph, where the launching operator is unknown."""

ITS_KERNELS: Final[dict[str, str]] = {
    **dict.fromkeys(("cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack"), "CatArray"),
    **dict.fromkeys(("clone", "contiguous", "copy", "to", "repeat", "tile", "roll", "constant_pad_nd"), "copy"),
    **dict.fromkeys(("fill", "full", "full_like", "zeros", "zeros_like", "ones", "ones_like", "new_full"), "Fill"),
    "arange": "arange",
}
"""Part of the name of the PyTorch kernels that do the operator's work. For operators that fill or copy."""

MOVING_KERNELS: Final = re.compile(r"copy|[Ff]ill|Cat|arange|conj_kernel|neg_kernel|neg_conj|pad")
"""Matches the PyTorch kernels that operators launch which only move data. Evidence that such an operator launched any
other kernel is forged.
"""

CODE: Final[tuple[tuple[str, str], ...]] = (
    (r"^$|^\[|^//anon|^/dev/(?:zero|shm/)|^/memfd:|kgbench-worker-", "own"),
    (r"/triton/_C/", "own"),
    (r"/torch/(?:lib/(?:libtorch|libc10|libshm)|_C\b)", "PyTorch's"),
    (r"/numpy/|/numpy\.libs/", "numpy's"),
    (r"/libpython3[^/]*$|/python3[^/]*$|/lib-dynload/[^/]*$", "Python's"),
    (
        r"/(?:ld-linux|ld-musl|libc|libm|libmvec|libdl|libpthread|librt|libffi|libgcc_s|libstdc\+\+|libgomp|libomp|libiomp5)"
        r"[-.\w]*\.so[^/]*$",
        "the system's",
    ),
)
"""Patterns of paths of files with machine code, with the owner; the first match decides. ``own`` is the candidate: its
folder, and code without a file.
"""

LIBRARIES: Final = re.compile(
    r"^lib(?:cublas|cudnn|cusparse|cusolver|cufft|cutensor|nvpl|mkl|openblas|scipy_openblas|blas|cblas|lapack|flexiblas"
    r"|onednn|dnnl|arm_compute)\w*|^_(?:moe_|vllm_\w*)?C\b.*\.so|^flash_attn\w*|^libtorchao"
)
"""File names of shared libraries that could do a problem's work."""

LIBRARY_MARKS: Final = re.compile(
    rb"openblas_get_co|MKL_Get_Version|mkl_serv_|cblas_[sdcz]gemm|bli_[sdcz]gemm|armpl_get"
)
"""Matches bytes in the files of host BLAS libraries. Used because a file may have any name."""
