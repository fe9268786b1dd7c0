"""vLLM's compiled operators, through ``torch.ops``, without importing any of vLLM's Python.

The wheel's shared libraries are found by ``importlib.util.find_spec("vllm")`` and loaded; the operators then stand
under ``torch.ops._C`` and its siblings. ``OPERATORS`` says which one each problem means and how it must be declared, so
that another version's changed signature is a reason and not a wrong call.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from kgbench.baselines.registry import Baseline, Unavailable

INSTALL_HINT: Final = "install the vllm wheel that was built for this torch (pip install vllm)"


@dataclass(frozen=True)
class Operator:
    """How one problem's operator is registered."""

    registered: str
    """``namespace::name``."""
    parameters: str
    """Its parameters as the problem's entry has them, types first and without alias marks. Further ones are accepted if
    they have defaults."""
    adapter: Callable[[Callable[..., Any]], Callable[..., Any]] | None = None
    """Turns the registered operator into a function of the entry's arguments; None where they are the same."""


OPERATORS: Final = {
    "rms_norm": Operator("_C::rms_norm", "Tensor result, Tensor input, Tensor weight, float epsilon"),
    "rotary_embedding": Operator(
        "_C::rotary_embedding",
        "Tensor positions, Tensor query, Tensor? key, int head_size, Tensor cos_sin_cache, bool is_neox",
    ),
    "reshape_and_cache": Operator(
        "_C_cache_ops::reshape_and_cache",
        "Tensor key, Tensor value, Tensor key_cache, Tensor value_cache, Tensor slot_mapping, str kv_cache_dtype, "
        "Tensor k_scale, Tensor v_scale",
    ),
    "paged_attention_v1": Operator(
        "_C::paged_attention_v1",
        "Tensor out, Tensor query, Tensor key_cache, Tensor value_cache, int num_kv_heads, float scale, "
        "Tensor block_tables, Tensor seq_lens, int block_size, int max_seq_len, Tensor? alibi_slopes, "
        "str kv_cache_dtype, Tensor k_scale, Tensor v_scale, int tp_rank, int blocksparse_local_blocks, "
        "int blocksparse_vert_stride, int blocksparse_block_size, int blocksparse_head_sliding_step",
    ),
    "fused_add_rms_norm": Operator(
        "_C::fused_add_rms_norm", "Tensor input, Tensor residual, Tensor weight, float epsilon"
    ),
    "shuffle_rows": Operator("_moe_C::shuffle_rows", "Tensor input_tensor, Tensor dst2src_map, Tensor output_tensor"),
    "permute_cols": Operator("_C::permute_cols", "Tensor A, Tensor perm"),
    "apply_repetition_penalties_cuda": Operator(
        "_C::apply_repetition_penalties_",
        "Tensor logits, Tensor prompt_mask, Tensor output_mask, Tensor repetition_penalties",
    ),
    "hadacore_transform": Operator("_C::hadacore_transform", "Tensor x, bool inplace"),
    "convert_fp8": Operator(
        "_C_cache_ops::convert_fp8", "Tensor dst_cache, Tensor src_cache, float scale, str kv_cache_dtype"
    ),
    "static_scaled_int8_quant": Operator(
        "_C::static_scaled_int8_quant", "Tensor result, Tensor input, Tensor scale, Tensor? azp"
    ),
    "dynamic_scaled_int8_quant": Operator(
        "_C::dynamic_scaled_int8_quant", "Tensor result, Tensor input, Tensor scale, Tensor? azp"
    ),
    "static_scaled_fp8_quant": Operator("_C::static_scaled_fp8_quant", "Tensor result, Tensor input, Tensor scale"),
    "dynamic_scaled_fp8_quant": Operator("_C::dynamic_scaled_fp8_quant", "Tensor result, Tensor input, Tensor scale"),
    "dynamic_per_token_scaled_fp8_quant": Operator(
        "_C::dynamic_per_token_scaled_fp8_quant", "Tensor result, Tensor input, Tensor scale, Tensor? scale_ub"
    ),
    "rms_norm_dynamic_per_token_quant": Operator(
        "_C::rms_norm_dynamic_per_token_quant",
        "Tensor result, Tensor input, Tensor weight, Tensor scale, float epsilon, Tensor? scale_ub, Tensor? residual",
    ),
    "rms_norm_per_block_quant": Operator(
        "_C::rms_norm_per_block_quant",
        "Tensor result, Tensor input, Tensor weight, Tensor scale, float epsilon, Tensor? scale_ub, Tensor? residual, "
        "int group_size, bool is_scale_transposed",
    ),
    "fused_qk_norm_rope": Operator(
        "_C::fused_qk_norm_rope",
        "Tensor qkv, int num_heads_q, int num_heads_k, int num_heads_v, int head_dim, float eps, Tensor q_weight, "
        "Tensor k_weight, Tensor cos_sin_cache, bool is_neox, Tensor position_ids",
    ),
    "selective_scan_fwd": Operator(
        "_C::selective_scan_fwd",
        "Tensor u, Tensor delta, Tensor A, Tensor B, Tensor C, Tensor? D_, Tensor? z_, Tensor? delta_bias_, "
        "bool delta_softplus, Tensor? query_start_loc, Tensor? cache_indices, Tensor? has_initial_state, "
        "Tensor ssm_states, int null_block_id, int block_size, Tensor? block_idx_first_scheduled_token, "
        "Tensor? block_idx_last_scheduled_token, Tensor? initial_state_idx, Tensor? cu_chunk_seqlen, "
        "Tensor? last_chunk_indices",
    ),
    "convert_vertical_slash_indexes": Operator(
        "_C::convert_vertical_slash_indexes",
        # The schema does name the lengths of the keys q_seqlens, too.
        "Tensor block_count, Tensor block_offset, Tensor column_count, Tensor column_index, Tensor q_seqlens, "
        "Tensor q_seqlens, Tensor vertical_indexes, Tensor slash_indexes, int context_size, int block_size_M, "
        "int block_size_N, bool causal",
    ),
}


def load(name: str, device_kind: str) -> Baseline:
    """The operator behind the problem ``vllm/<name>`` on the current CUDA device.

    Raises ``Unavailable`` without a GPU, without vLLM or with a vLLM that declares it otherwise, ``ValueError`` for a
    name without a row.
    """
    if name not in OPERATORS:
        raise ValueError(f"vllm:{name}: no operator is known; add its row to OPERATORS in baselines/vllm.py")
    if device_kind != "cuda" or not torch.cuda.is_available():
        raise Unavailable("vLLM's compiled operators need an NVIDIA GPU")
    failures = _load_libraries()
    operator = OPERATORS[name]
    registered = _registered(operator.registered)
    if registered is None:
        tried = "; ".join(f"{file}: {why}" for file, why in failures.items()) or "all its libraries loaded"
        raise Unavailable(f"{_version()} registers no {operator.registered} ({tried}); {INSTALL_HINT}")
    difference = schema_difference(str(registered._schema), operator.parameters)
    if difference:
        raise Unavailable(f"{_version()} declares {operator.registered} otherwise: {difference}; install vllm 0.20.2")
    call = operator.adapter(registered) if operator.adapter else registered
    return Baseline(call=call, library=_version(), notes={"operator": operator.registered})


def schema_difference(schema: str, parameters: str) -> str:
    """What in a registered schema's parameters differs from ``parameters``; empty when a call of those works.

    ``schema``: as PyTorch prints it, ``_C::rms_norm(Tensor($0! -> ) result, …) -> ()``.
    """
    found = split_parameters(schema)
    wanted = [parameter.strip() for parameter in parameters.split(",")]
    for position, want in enumerate(wanted):
        have = found[position] if position < len(found) else "nothing"
        if have.partition("=")[0] != want:
            return f"parameter {position + 1} is '{have}', expected '{want}'"
    missing = [parameter for parameter in found[len(wanted) :] if "=" not in parameter]
    return f"it also needs '{missing[0]}'" if missing else ""


def split_parameters(schema: str) -> list[str]:
    """``["Tensor result", "Tensor input", …]`` of a schema, without alias marks such as ``($0! -> )``."""
    text = re.sub(r"\((?:\$\d+|[a-z])!?(?: -> [^)]*)?\)", "", schema)
    depth, parameters = 1, [""]
    for character in text[text.index("(") + 1 :]:
        depth += (character in "([") - (character in ")]")
        if depth == 0:
            break
        if character == "," and depth == 1:
            parameters.append("")
        else:
            parameters[-1] += character
    return [parameter.strip() for parameter in parameters if parameter.strip() not in ("", "*")]


@functools.cache
def _load_libraries() -> dict[str, str]:
    """Load every compiled library of the installed vLLM; file name → reason for those that did not load."""
    spec = importlib.util.find_spec("vllm")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    files = sorted(path for folder in folders for path in Path(folder).glob("*.so"))
    if not files:
        raise Unavailable(f"vLLM is {'without compiled libraries' if spec else 'not installed'}; {INSTALL_HINT}")
    failures = {}
    for path in files:
        try:
            torch.ops.load_library(str(path))  # type: ignore[no-untyped-call]
        except OSError as error:
            failures[path.name] = str(error).splitlines()[0][:200]
    return failures


def _registered(name: str) -> torch._ops.OpOverload | None:
    namespace, _, operator = name.partition("::")
    packet = getattr(getattr(torch.ops, namespace), operator, None)
    return None if packet is None else packet.default


def _version() -> str:
    try:
        return f"vLLM {importlib.metadata.version('vllm')}"
    except importlib.metadata.PackageNotFoundError:
        return "vLLM of unknown version"
