"""References of vLLM's expert-routing problems, the one form of their equally right answers, and plain fallbacks.

The reference functions take their entry's parameters by name, floating tensors as float64. ``prepare_*`` finish drawn
inputs in place. ``*_plain`` have the entries' own signatures and dtypes and are timed where vLLM does not run.
``canonical_*`` turn every right answer into the reference's, and no wrong one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.aten import finite

Expectations = dict[str, Expected]


def moe_sum(input: torch.Tensor, output: torch.Tensor) -> Expectations:
    """The sum over the experts of each token; the error scale is the sum of the terms' sizes."""
    return {"output": Expected(input.sum(1), finite(input.abs().sum(1)))}


def moe_sum_plain(input: torch.Tensor, output: torch.Tensor) -> None:
    """``moe_sum`` by torch's own sum."""
    torch.sum(input, 1, out=output)


# --- which token goes to which block of an expert ---


def batched_moe_align_block_size(
    max_tokens_per_batch: int,
    block_size: int,
    expert_num_tokens: torch.Tensor,
    sorted_ids: torch.Tensor,
    expert_ids: torch.Tensor,
    num_tokens_post_pad: torch.Tensor,
) -> Expectations:
    """Each expert's rows of the batch, padded to whole blocks, one expert behind the other."""
    experts, device = len(expert_num_tokens), expert_num_tokens.device
    counts = expert_num_tokens.long()
    blocks = -(-counts // block_size)
    begins = (blocks.cumsum(0) - blocks) * block_size
    ids = torch.full_like(sorted_ids, experts * max_tokens_per_batch)
    expert = torch.repeat_interleave(torch.arange(experts, device=device), counts)
    place = torch.arange(len(expert), device=device) - (counts.cumsum(0) - counts)[expert]
    ids[begins[expert] + place] = (expert * max_tokens_per_batch + place).to(ids.dtype)
    owners = torch.full_like(expert_ids, -1)
    owner = torch.repeat_interleave(torch.arange(experts, device=device), blocks)
    owners[: len(owner)] = owner.to(owners.dtype)
    total = (blocks.sum() * block_size).reshape(1).to(num_tokens_post_pad.dtype)
    return {"sorted_ids": Expected(ids), "expert_ids": Expected(owners), "num_tokens_post_pad": Expected(total)}


def batched_moe_align_block_size_plain(
    max_tokens_per_batch: int,
    block_size: int,
    expert_num_tokens: torch.Tensor,
    sorted_ids: torch.Tensor,
    expert_ids: torch.Tensor,
    num_tokens_post_pad: torch.Tensor,
) -> None:
    """``batched_moe_align_block_size``: integers already."""
    right = batched_moe_align_block_size(
        max_tokens_per_batch, block_size, expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad
    )
    sorted_ids.copy_(right["sorted_ids"].value)
    expert_ids.copy_(right["expert_ids"].value)
    num_tokens_post_pad.copy_(right["num_tokens_post_pad"].value)


def prepare_batched_counts(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Every ``empty_every``-th expert gets no token, the ``full``-th as many as there may be."""
    counts = tensors["expert_num_tokens"]
    if variables["empty_every"]:
        counts[:: variables["empty_every"]] = 0
    if variables["full"] is not None:
        counts[variables["full"]] = variables["max_tokens"]
