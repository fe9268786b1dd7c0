"""Whose work counts: what a candidate may call of PyTorch and other libraries, by the kind of its problem. No torch.

A kernel for a problem must do the problem's work itself. ``allowed`` judges one operator by name; who sees operators at
run time asks it. ``hints`` reads a candidate's text: names can be hidden from it and mean something else than they say,
so what it finds is a hint for the report and never a verdict. docs/policy.md says the same in words.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kgbench.core import syntax
from kgbench.problem.model import Problem

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
        "_conj", "_neg_view", "_reshape_alias", "_unsafe_view", "adjoint", "alias", "as_strided", "as_strided_",
        "broadcast_tensors", "broadcast_to", "chunk", "conj", "detach", "detach_", "diagonal", "dsplit", "expand",
        "expand_as", "flatten", "hsplit", "imag", "lift_fresh", "linalg_diagonal", "mH", "mT", "matrix_H", "moveaxis",
        "movedim", "narrow", "numpy_T", "permute", "positive", "ravel", "real", "reshape", "reshape_as", "resolve_conj",
        "resolve_neg", "select", "set_", "slice", "slice_inverse", "split", "split_with_sizes", "squeeze", "squeeze_",
        "swapaxes", "swapaxes_", "swapdims", "swapdims_", "t", "t_", "tensor_split", "transpose", "transpose_",
        "unbind", "unflatten", "unfold", "unsqueeze", "unsqueeze_", "view", "view_as", "view_as_complex",
        "view_as_real", "vsplit",
    ),
    "copies": (
        "_conj_copy", "_copy_from", "_copy_from_and_resize", "_neg_view_copy", "_reshape_alias_copy", "_reshape_copy",
        "_to_copy", "alias_copy", "as_strided_copy", "as_tensor", "clone", "constant_pad_nd", "contiguous", "copy",
        "copy_", "cpu", "cuda", "detach_copy", "diagonal_copy", "expand_copy", "lift_fresh_copy", "narrow_copy", "pad",
        "permute_copy", "pin_memory", "select_copy", "slice_copy", "split_copy", "split_with_sizes_copy",
        "squeeze_copy", "t_copy", "to", "transpose_copy", "type_as", "unbind_copy", "unfold_copy", "unsqueeze_copy",
        "view_as_complex_copy", "view_as_real_copy", "view_copy",
    ),
    "host": ("_local_scalar_dense", "is_nonzero", "item"),
}  # fmt: skip
"""Operators of ATen that compute nothing, by what they do. Whatever stands in no group computes."""

OUTSIDE: Final[dict[str, tuple[str, ...]]] = {
    "autograd and autocast; candidates run without either": (
        "_autocast_to_full_precision", "_autocast_to_reduced_precision", "_fw_primal", "_grad_sum_to_size",
        "_make_dual", "_test_autograd_multiple_dispatch_view", "_unpack_dual",
    ),
    "sparse and nested tensors; no problem has one": (
        "_indices", "_ncf_unsqueeze", "_ncf_view", "_nested_get_values", "_nested_view_from_buffer",
        "_nested_view_from_jagged", "_sparse_broadcast_to", "_values", "ccol_indices", "coalesce", "col_indices",
        "crow_indices", "indices", "row_indices", "values",
    ),
    "TorchScript's own lists, dictionaries and futures": (
        "__getitem__", "_unwrap_optional", "get", "keys", "local_value", "pop", "setdefault", "to_here",
    ),
}  # fmt: skip
"""Operators that return a view and are in no group, with the reason."""

KIND_GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "compute": ("metadata", "allocation", "fills", "views", "copies", "host"),
    "random": ("metadata", "allocation", "fills", "views", "copies", "host"),
    "creation": ("metadata", "allocation", "fills", "views"),
    "view": ("metadata", "views"),
    "sync": ("metadata", "allocation", "views", "copies", "host"),
}
"""What a candidate of each kind may call."""

KIND_WORDS: Final[dict[str, str]] = {
    "compute": "memory, views, fills, and copies to another dtype, layout or device, but nothing that computes",
    "random": "memory, views, fills, and copies to another dtype, layout or device, but nothing that computes or draws",
    "creation": "memory and fills",
    "view": "other views, but no copy",
    "sync": "copies to the host",
}
"""The same in words."""

WORK: Final = ("fills", "copies")
"""Groups whose operators do each other's work: a problem that is one of them may use none of its group."""

ALIASES: Final[dict[str, str]] = {
    "broadcast_to": "expand", "expand_as": "expand", "item": "_local_scalar_dense", "moveaxis": "movedim",
    "numpy_T": "permute", "ravel": "flatten", "reshape_as": "reshape", "swapaxes": "transpose", "swapdims": "transpose",
    "tensor": "scalar_tensor", "view_as": "view", "zero": "zeros", "_neg_view": "neg",
}  # fmt: skip
"""Operators that are another one by a second name, or leave it to whoever copies their result."""

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
"""Namespaces of libraries' operators. One that is not here is the candidate's own; what it calls is seen, too."""

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
    "flag_gems.utils": "",  # launchers and generators, for kernels of one's own
    "liger_kernel": "Liger's kernels do the work then",
    "flashinfer": "FlashInfer's kernels do the work then",
    "flash_attn": "FlashAttention's kernels do the work then",
    "sgl_kernel": "SGLang's kernels do the work then",
    "transformer_engine": "Transformer Engine's kernels do the work then",
    "xformers": "xFormers' kernels do the work then",
    "kgbench": "it is what judges the kernel",
}
"""Functions and modules of Python that no candidate may call, with the reason. The longest match counts; one without a
reason may be called."""

MODULE_EXCEPTIONS: Final[dict[str, str]] = {
    "torch.nn.functional.pad": "constant_pad_nd",
    "torch.nn.Parameter": "detach",
    "torch.nn.parameter": "detach",
}
"""Names below MODULES that are an operator of a group."""

PLAIN: Final = (
    "asarray", "autocast", "device", "dtype", "enable_grad", "finfo", "from_dlpack", "from_numpy", "frombuffer",
    "get_default_device", "get_default_dtype", "get_device_module", "iinfo", "inference_mode", "initial_seed",
    "is_grad_enabled", "is_storage", "is_tensor", "layout", "load", "manual_seed", "memory_format", "no_grad", "seed",
    "set_default_device", "set_default_dtype", "set_float32_matmul_precision", "set_grad_enabled", "set_num_threads",
    "set_printoptions", "to_dlpack", "typename", "broadcast_shapes", "is_deterministic_algorithms_warn_only_enabled",
    "are_deterministic_algorithms_enabled", "use_deterministic_algorithms", "get_num_threads", "get_rng_state",
)  # fmt: skip
"""Functions of the module torch that are no operators and compute nothing."""

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
"""Methods of a tensor that compute, as far as a text can tell them from methods of other things."""

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
"""How names of libraries' kernels look, first match first. A candidate's own kernel can be called anything: whoever
gives one a library's name is taken for the library."""

HARMLESS_KERNELS: Final = re.compile(
    r"FillFunctor|direct_copy_kernel|float(?:16|32|8)?_copy_kernel|bfloat16_copy|float8_copy|CatArrayBatchedCopy|\barange_cuda"
    r"|copy_device_to_device|conj_kernel|neg_conj"
)
"""Of PyTorch's kernels those that fill and copy, where nobody knows which operator launched one: in a CUDA graph."""

MOVING_KERNELS: Final = re.compile(r"copy|[Ff]ill|Cat|arange|conj_kernel|neg_kernel|neg_conj|pad")
"""Of PyTorch's kernels those that an operator of a group launches: whoever names such a one for another has lied."""

LIBRARIES: Final = re.compile(
    r"^lib(?:cublas|cudnn|cusparse|cusolver|cufft|cutensor|nvpl|mkl|openblas|scipy_openblas|blas|cblas|lapack|flexiblas"
    r"|onednn|dnnl|arm_compute)\w*|^_(?:moe_|vllm_\w*)?C\b.*\.so|^flash_attn\w*|^libtorchao"
)
"""File names of shared libraries that could do a problem's work."""

LIBRARY_MARKS: Final = re.compile(
    rb"openblas_get_co|MKL_Get_Version|mkl_serv_|cblas_[sdcz]gemm|bli_[sdcz]gemm|armpl_get"
)
"""What stands in the file of a library of the host's, whatever that is called."""

_OPERATOR: Final = re.compile(r"^(?:torch\.ops\.)?(\w+)(?:::|\.)(\w+)(?:\.(\w+))?$")
_FOREIGN: Final = re.compile(
    r"lib(?:cublas|cudnn|cusparse|cusolver)\w*|-l(?:cublas|cudnn|cusparse|cusolver)\w*"
    r"|<(?:cublas|cudnn|cusparse|cusolver|cutensor)\w*\.h>|\b(?:cublas|cudnn|cusparse|cusolver)[A-Z]\w*(?=\s*\()"
    r"|\b(?:at|torch)::(?:_?softmax|addmm|bmm|conv\w*|einsum|linear|matmul|mm|scaled_dot_product_attention)\b"
)
"""In the text of C++ or in the name of a library: cuBLAS, cuDNN and the like, and ATen's own work."""


@dataclass(frozen=True)
class Verdict:
    allowed: bool
    why: str


@dataclass(frozen=True)
class Hint:
    line: int
    what: str
    """The call as the text has it: ``calls torch.matmul``."""
    rule: str

    def __str__(self) -> str:
        return f"line {self.line} {self.what}, which {self.rule}"


def allowed(problem: Problem, operator: str) -> Verdict:
    """Whether a candidate of this problem may call an operator: ``aten::add.Tensor``, also as ``aten.add.Tensor``.

    Raises ValueError for what is no operator's name.
    """
    match = _OPERATOR.match(operator)
    if match is None:
        raise ValueError(f"'{operator}' is no operator's name; write aten::add.Tensor")
    namespace, name = match[1], match[2]
    if namespace in NAMESPACES:
        return Verdict(False, f"it is one of {NAMESPACES[namespace]} operators")
    if namespace != "aten":
        return Verdict(True, "it is no library's")
    return _aten(problem, name)


def whose_kernel(name: str) -> str:
    """Whose a device kernel is, by its name; empty for one that looks like nobody's but the candidate's."""
    return next((whose for pattern, whose in KERNELS if re.search(pattern, name)), "")


def _aten(problem: Problem, name: str) -> Verdict:
    own = {family(each) for each in own_operators(problem)}
    if family(name) in own:
        return Verdict(False, f"it is the operator of {problem.id} itself")
    group = group_of(name)
    if group is None:
        return Verdict(False, "it computes, which the kernel has to do itself")
    if group not in KIND_GROUPS[problem.kind]:
        return Verdict(False, f"it belongs to {group}, and allowed are {KIND_WORDS[problem.kind]}")
    if group in WORK and problem.kind in ("compute", "random") and any(_does(group, each) for each in own):
        return Verdict(False, f"it belongs to {group}, and so does {problem.id} itself")
    return Verdict(True, f"it belongs to {group}")


def own_operators(problem: Problem) -> set[str]:
    """Names under which ATen has the problem's operator."""
    targets = [target for overload in problem.overloads for target in overload.baseline.values()]
    named = [target.partition(":")[2].partition(".")[0] for target in targets if target.startswith("aten:")]
    return {*named, *([problem.name] if problem.source == "aten" else [])}


def family(name: str) -> str:
    """One name for an operator, what it is in place, its copying form and its second names."""
    name = ALIASES.get(name, name)
    bare = name.strip("_").removesuffix("_copy") or name
    return ALIASES.get(bare, bare)


def group_of(name: str) -> str | None:
    """The group in which an operator of ATen stands; None where it computes."""
    return next((group for group, names in GROUPS.items() if name in names), None)


def _does(group: str, own: str) -> bool:
    return any(family(each) == own for each in GROUPS[group])


# --- reading a text ---


def hints(problem: Problem, source: str) -> list[Hint]:
    """What a candidate's text seems to call and may not, by line, each call once. Empty for what is no Python."""
    try:
        tree = syntax.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = {(hint.what, hint.rule): hint for hint in sorted(_found(problem, tree), key=lambda hint: -hint.line)}
    return sorted(found.values(), key=lambda hint: (hint.line, hint.what))


def _found(problem: Problem, tree: ast.Module) -> Iterator[Hint]:
    names = _imported(tree)
    documents = {id(node.body[0].value) for node in ast.walk(tree) if _has_docstring(node)}  # type: ignore[attr-defined]
    for node in _on_the_host(tree, names):
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from _import(problem, node)
            case ast.Call(func=function):
                yield from _call(problem, function, names)
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                yield Hint(node.lineno, "uses @", _rule(problem, allowed(problem, "aten::matmul").why))
            case ast.Constant(value=str(text)) if id(node) not in documents:
                for match in _FOREIGN.finditer(text):
                    line = node.lineno + text[: match.start()].count("\n")
                    yield Hint(line, f"names {match[0]}", _rule(problem, "a library does the work then"))


def _call(problem: Problem, function: ast.expr, names: dict[str, str]) -> Iterator[Hint]:
    dotted = _dotted(function, names)
    if dotted is None:
        if isinstance(function, ast.Attribute) and function.attr in METHODS and not _is_super(function.value):
            why = allowed(problem, f"aten::{function.attr}").why
            yield Hint(function.lineno, f"calls .{function.attr}()", _rule(problem, why))
        return
    why = _why_not(problem, dotted)
    if why:
        yield Hint(function.lineno, f"calls {dotted}", _rule(problem, why))


def _why_not(problem: Problem, dotted: str) -> str:
    """Why a function of a module may not be called; empty when it may, as far as its name says."""
    exception = next((MODULE_EXCEPTIONS[each] for each in MODULE_EXCEPTIONS if _below(dotted, each)), None)
    if exception is None and (why := module_rule(dotted)):
        return why
    parts = dotted.split(".")
    if exception is not None:
        verdict = allowed(problem, f"aten::{exception}")
    elif dotted.startswith("torch.ops.") and len(parts) in (4, 5):
        verdict = allowed(problem, dotted)
    elif parts[:2] == ["torch", "Tensor"] and len(parts) == 3:
        verdict = allowed(problem, f"aten::{parts[2]}") if parts[2] in METHODS else Verdict(True, "")
    elif parts[0] == "torch" and len(parts) == 2 and parts[1][0].islower() and parts[1] not in PLAIN:
        verdict = allowed(problem, f"aten::{parts[1]}")
    else:
        return ""
    return "" if verdict.allowed else verdict.why


def _import(problem: Problem, node: ast.Import | ast.ImportFrom) -> Iterator[Hint]:
    """A module whose every use is refused is named where it is imported."""
    modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for module in modules:
        why = module_rule(module)
        if why and module.partition(".")[0] != "torch":
            yield Hint(node.lineno, f"imports {module}", _rule(problem, why))


def module_rule(dotted: str) -> str:
    """Why nothing of a Python module may be called; empty where no rule names it."""
    matching = [each for each in MODULES if _below(dotted, each)]
    return MODULES[max(matching, key=len)] if matching else ""


def _below(dotted: str, module: str) -> bool:
    return dotted == module or dotted.startswith(f"{module}.")


def _rule(problem: Problem, why: str) -> str:
    return f"{problem.kind} candidates may not use (policy: {why})"


def _imported(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for, dotted."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr, names: dict[str, str]) -> str | None:
    """``F.softmax`` as ``torch.nn.functional.softmax``; None for what does not begin with an imported name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return None
    return ".".join([names[node.id], *reversed(parts)])


def _on_the_host(node: ast.AST, names: dict[str, str]) -> Iterator[ast.AST]:
    """Every node but those inside functions that Triton compiles, whose names mean something else."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and any(_is_triton(each, names) for each in child.decorator_list):
            continue
        yield child
        yield from _on_the_host(child, names)


def _is_triton(decorator: ast.expr, names: dict[str, str]) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (_dotted(function, names) or "").partition(".")[0] in ("triton", "numba", "cutlass", "tilelang")


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _has_docstring(node: ast.AST) -> bool:
    with_body = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return (
        isinstance(node, with_body)
        and bool(node.body)
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    )
