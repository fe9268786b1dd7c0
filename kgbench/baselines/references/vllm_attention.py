"""References of vLLM's paged attention and of merging the parts of an attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.vllm import (
    FP8_LARGEST,
    paged_attention,
    paged_attention_plain,
)
from kgbench.baselines.references.vllm_caches import Expectations


def paged_attention_v2(out: torch.Tensor, **arguments: Any) -> Expectations:
    """``paged_attention``; what is left in the work space is nobody's business."""
    work_space = ("exp_sums", "max_logits", "tmp_out")
    return paged_attention(**arguments) | {name: Expected(arguments[name]) for name in work_space}


def canonical_out(outputs: dict[str, torch.Tensor], arguments: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Only ``out`` is an answer, the rest is work space."""
    return {"out": outputs["out"]}


def paged_attention_v2_plain(
    out: torch.Tensor,
    exp_sums: torch.Tensor,
    max_logits: torch.Tensor,
    tmp_out: torch.Tensor,
    *arguments: Any,
) -> None:
    """``paged_attention`` without partitions."""
    paged_attention_plain(out, *arguments)


def merge_attn_states(
    prefix_output: torch.Tensor,
    prefix_lse: torch.Tensor,
    suffix_output: torch.Tensor,
    suffix_lse: torch.Tensor,
    output_lse: torch.Tensor | None,
    prefill_tokens_with_context: int | None,
    output_scale: torch.Tensor | None,
    **_: Any,
) -> Expectations:
    """Two attention results over disjoint keys, weighted by their shares exp(lse) / (exp(lse) + exp(other lse)).

    Rounding a difference d of two lse makes exp(d) wrong by |d| of its units, so shares count 1 + |d| times.
    """
    tokens = prefix_output.shape[0]
    with_prefix = tokens if prefill_tokens_with_context is None else prefill_tokens_with_context
    prefix, suffix = (torch.where(torch.isinf(lse), float("-inf"), lse) for lse in (prefix_lse, suffix_lse))
    largest = torch.maximum(prefix, suffix)
    empty = torch.isinf(largest)
    shares = [torch.exp(lse - largest) for lse in (prefix, suffix)]
    total = shares[0] + shares[1]
    value, scale = torch.zeros_like(prefix_output), torch.zeros_like(prefix_output)
    for share, lse, part in zip(shares, (prefix, suffix), (prefix_output, suffix_output), strict=True):
        weight = torch.where(empty, 0.0, share / total)
        blur = torch.where(weight > 0, 1 + (lse - largest).abs(), 1.0)
        value += _per_token(weight) * part
        scale += _per_token(weight * blur) * part.abs()
    value = torch.where(_per_token(empty), prefix_output, value)
    merged_lse = torch.where(empty, float("-inf"), torch.log(total) + largest)
    copied = torch.arange(tokens, device=value.device) >= with_prefix
    value = torch.where(copied[:, None, None], suffix_output, value)
    scale = torch.where(copied[:, None, None], suffix_output.abs(), scale)
    merged_lse = torch.where(copied, suffix_lse, merged_lse)
    if output_scale is not None:
        value, scale = value / output_scale, scale / output_scale
    expected = {"output": Expected(value, scale)}
    if output_lse is not None:
        sizes = torch.where(torch.isfinite(merged_lse), 1 + merged_lse.abs(), 1.0)
        expected["output_lse"] = Expected(merged_lse, sizes)
    return expected


def merge_attn_states_plain(
    output: torch.Tensor,
    output_lse: torch.Tensor | None,
    prefix_output: torch.Tensor,
    prefix_lse: torch.Tensor,
    suffix_output: torch.Tensor,
    suffix_lse: torch.Tensor,
    prefill_tokens_with_context: int | None,
    output_scale: torch.Tensor | None = None,
) -> None:
    """``merge_attn_states`` in float32."""
    expected = merge_attn_states(
        prefix_output=prefix_output.float(),
        prefix_lse=prefix_lse,
        suffix_output=suffix_output.float(),
        suffix_lse=suffix_lse,
        output_lse=output_lse,
        prefill_tokens_with_context=prefill_tokens_with_context,
        output_scale=output_scale,
    )
    value = expected["output"].value
    output.copy_(value if output_scale is None else value.clamp(-FP8_LARGEST, FP8_LARGEST))
    if output_lse is not None:
        output_lse.copy_(expected["output_lse"].value)


def _per_token(per_head: torch.Tensor) -> torch.Tensor:
    """(heads, tokens) as (tokens, heads, 1)."""
    return per_head.mT[:, :, None]


def prepare_merge(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Infinite lse of either sign in either part or both with ``edges``, and poison in prefixes that do not exist."""
    prefix, suffix = tensors["prefix_lse"], tensors["suffix_lse"]
    if variables["edges"]:
        pick = torch.randint(0, 8, prefix.shape, generator=generator, device=generator.device)
        pick.flatten()[:8] = torch.arange(8, device=generator.device)[: pick.numel()]
        signs = torch.where(pick % 2 == 0, float("-inf"), float("inf"))
        prefix.copy_(torch.where((pick == 2) | (pick == 3) | (pick >= 6), signs, prefix))
        suffix.copy_(torch.where(pick >= 4, signs, suffix))
    if variables["with_prefix"] is not None:
        prefix[:, variables["with_prefix"] :] = float("nan")
        tensors["prefix_output"][variables["with_prefix"] :] = float("nan")
