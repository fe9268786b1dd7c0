"""Reference of vLLM's norm and rotation of the heads of queries and keys."""

from __future__ import annotations

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.vllm_norms import Expectations, in_parts, normalised


def fused_qk_norm_rope(
    qkv: torch.Tensor,
    num_heads_q: int,
    num_heads_k: int,
    num_heads_v: int,
    head_dim: int,
    eps: float,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
    position_ids: torch.Tensor,
) -> Expectations:
    """Each query and key head normalised, weighted and then rotated; value heads as they are.

    The error scale of a rotated element is the sum of its two products' sizes.
    """
    heads = in_parts(qkv, head_dim)
    weights = torch.stack([q_weight] * num_heads_q + [k_weight] * num_heads_k)
    normed = normalised(heads[:, : num_heads_q + num_heads_k], eps) * weights
    angles = cos_sin_cache[position_ids].unsqueeze(1)
    rest = heads[:, num_heads_q + num_heads_k :]
    value = torch.cat((_rotated(normed, angles, is_neox, -1.0), rest), 1).flatten(1)
    scale = torch.cat((_rotated(normed.abs(), angles.abs(), is_neox, 1.0), rest.abs()), 1).flatten(1)
    return {"qkv": Expected(value, scale)}


def fused_qk_norm_rope_plain(
    qkv: torch.Tensor,
    num_heads_q: int,
    num_heads_k: int,
    num_heads_v: int,
    head_dim: int,
    eps: float,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    cos_sin_cache: torch.Tensor,
    is_neox: bool,
    position_ids: torch.Tensor,
) -> None:
    """``fused_qk_norm_rope`` in float32, rounded once."""
    heads = in_parts(qkv, head_dim)[:, : num_heads_q + num_heads_k]
    weights = torch.stack([q_weight] * num_heads_q + [k_weight] * num_heads_k)
    normed = normalised(heads.float(), eps) * weights
    heads.copy_(_rotated(normed, cos_sin_cache[position_ids].float().unsqueeze(1), is_neox, -1.0))


def _rotated(heads: torch.Tensor, angles: torch.Tensor, is_neox: bool, minus: float) -> torch.Tensor:
    """heads: (tokens, heads, head_dim); angles: (tokens, 1, rotary_dim), the cosines first."""
    half = angles.shape[-1] // 2
    cos, sin = angles[..., :half], angles[..., half:]
    first, second = (
        (slice(0, half), slice(half, 2 * half)) if is_neox else (slice(0, 2 * half, 2), slice(1, 2 * half, 2))
    )
    x, y = heads[..., first], heads[..., second]
    rotated = heads.clone()
    rotated[..., first] = x * cos + minus * (y * sin)
    rotated[..., second] = y * cos + x * sin
    return rotated
