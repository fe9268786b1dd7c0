"""References of vLLM's expert-routing problems, the one form of their equally correct answers, and plain fallbacks.

The reference functions take their entry's parameters by name, floating tensors as float64. ``prepare_*`` finish drawn
inputs in place. ``*_plain`` have the entries' own signatures and dtypes and are timed where vLLM does not run.
``canonical_*`` turn every correct answer into the reference's, and no wrong one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.aten import finite

Expectations = dict[str, Expected]


def moe_sum(input: torch.Tensor, output: torch.Tensor) -> Expectations:
    """The sum over the experts of each token; the error scale is the sum of the terms' sizes.

    n terms, added one by one, are rounded n - 1 times, and the limit has 4 units of roundoff: (n - 1) / 4 times
    that, from 6 terms on.
    """
    roundings = input.shape[1] - 1
    return {"output": Expected(input.sum(1), finite(input.abs().sum(1) * max(1.0, roundings / 4)))}


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


def moe_align_block_size(
    topk_ids: torch.Tensor,
    num_experts: int,
    block_size: int,
    sorted_token_ids: torch.Tensor,
    experts_ids: torch.Tensor,
    maybe_expert_map: torch.Tensor | None,
    **_: Any,
) -> Expectations:
    """Token-expert pairs grouped by expert, each group padded to whole blocks."""
    ids, owners, total = _aligned(
        _local_experts(topk_ids, maybe_expert_map), num_experts, block_size, len(sorted_token_ids), len(experts_ids)
    )
    return {"sorted_token_ids": Expected(ids), "experts_ids": Expected(owners), "num_tokens_post_pad": Expected(total)}


def moe_align_block_size_plain(
    topk_ids: torch.Tensor,
    num_experts: int,
    block_size: int,
    sorted_token_ids: torch.Tensor,
    experts_ids: torch.Tensor,
    num_tokens_post_pad: torch.Tensor,
    maybe_expert_map: torch.Tensor | None,
) -> None:
    """``moe_align_block_size``: integers already."""
    ids, owners, total = _aligned(
        _local_experts(topk_ids, maybe_expert_map), num_experts, block_size, len(sorted_token_ids), len(experts_ids)
    )
    sorted_token_ids.copy_(ids)
    experts_ids.copy_(owners)
    num_tokens_post_pad.copy_(total)


def moe_lora_align_block_size(
    topk_ids: torch.Tensor,
    token_lora_mapping: torch.Tensor,
    num_experts: int,
    block_size: int,
    max_num_tokens_padded: int,
    max_num_m_blocks: int,
    sorted_token_ids: torch.Tensor,
    experts_ids: torch.Tensor,
    num_tokens_post_pad: torch.Tensor,
    adapter_enabled: torch.Tensor,
    lora_ids: torch.Tensor,
    maybe_expert_map: torch.Tensor | None,
    **_: Any,
) -> Expectations:
    """``moe_align_block_size`` for each adapter's tokens, into its own part of the outputs."""
    ids, owners, total = sorted_token_ids.clone(), experts_ids.clone(), num_tokens_post_pad.clone()
    experts = _local_experts(topk_ids, maybe_expert_map)
    for lora in _served(adapter_enabled, lora_ids):
        mine = (token_lora_mapping == lora).repeat_interleave(topk_ids.shape[1])
        part, blocks = _part(lora, max_num_tokens_padded), _part(lora, max_num_m_blocks)
        ids[part], owners[blocks], total[lora : lora + 1] = _aligned(
            torch.where(mine, experts, -1), num_experts, block_size, max_num_tokens_padded, max_num_m_blocks
        )
    return {"sorted_token_ids": Expected(ids), "experts_ids": Expected(owners), "num_tokens_post_pad": Expected(total)}


def moe_lora_align_block_size_plain(
    topk_ids: torch.Tensor,
    token_lora_mapping: torch.Tensor,
    num_experts: int,
    block_size: int,
    max_loras: int,
    max_num_tokens_padded: int,
    max_num_m_blocks: int,
    sorted_token_ids: torch.Tensor,
    experts_ids: torch.Tensor,
    num_tokens_post_pad: torch.Tensor,
    adapter_enabled: torch.Tensor,
    lora_ids: torch.Tensor,
    maybe_expert_map: torch.Tensor | None,
) -> None:
    """``moe_lora_align_block_size``: integers already."""
    outputs = (sorted_token_ids, experts_ids, num_tokens_post_pad)
    right = moe_lora_align_block_size(
        topk_ids, token_lora_mapping, num_experts, block_size, max_num_tokens_padded, max_num_m_blocks,
        *outputs, adapter_enabled, lora_ids, maybe_expert_map,
    )  # fmt: skip
    for output, expected in zip(outputs, right.values(), strict=True):
        output.copy_(expected.value)


def _local_experts(topk_ids: torch.Tensor, expert_map: torch.Tensor | None) -> torch.Tensor:
    """int64 (pairs,): the expert of each pair on this device, -1 where it lives elsewhere."""
    experts = topk_ids.flatten().long()
    return experts if expert_map is None else expert_map.long()[experts]


def _served(adapter_enabled: torch.Tensor, lora_ids: torch.Tensor) -> list[int]:
    """Adapters that tokens use and that are enabled."""
    enabled = adapter_enabled.tolist()
    return [lora for lora in lora_ids.tolist() if lora >= 0 and enabled[lora]]


def _part(lora: int, size: int) -> slice:
    return slice(lora * size, (lora + 1) * size)


def _begins(experts: torch.Tensor, num_experts: int, block_size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """int64 (num_experts,) each: where an expert's rows begin, and how many blocks they are."""
    blocks = -(-torch.bincount(experts[experts >= 0], minlength=num_experts) // block_size)
    return (blocks.cumsum(0) - blocks) * block_size, blocks


def _aligned(
    experts: torch.Tensor, num_experts: int, block_size: int, size: int, block_count: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """int32 (size,), (block_count,), (1,): pairs by expert, each block's expert, rows in use."""
    device = experts.device
    begins, blocks = _begins(experts, num_experts, block_size)
    pairs = (experts >= 0).nonzero().flatten()
    pairs = pairs[experts[pairs].argsort(stable=True)]
    own = experts[pairs]
    counts = torch.bincount(own, minlength=num_experts)
    place = torch.arange(len(pairs), device=device) - (counts.cumsum(0) - counts)[own]
    ids = torch.full((size,), len(experts), dtype=torch.int32, device=device)
    ids[begins[own] + place] = pairs.to(torch.int32)
    owners = torch.full((block_count,), -1, dtype=torch.int32, device=device)
    owner = torch.repeat_interleave(torch.arange(num_experts, device=device), blocks)
    owners[: len(owner)] = owner.to(torch.int32)
    return ids, owners, (blocks.sum() * block_size).reshape(1).to(torch.int32)


def canonical_align(outputs: dict[str, torch.Tensor], arguments: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Each expert's rows in ascending order."""
    experts = _local_experts(arguments["topk_ids"], arguments["maybe_expert_map"])
    ids = _ascending(outputs["sorted_token_ids"], experts, arguments["num_experts"], arguments["block_size"])
    return {**outputs, "sorted_token_ids": ids}


def canonical_lora_align(outputs: dict[str, torch.Tensor], arguments: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Each expert's rows in ascending order, adapter by adapter."""
    experts = _local_experts(arguments["topk_ids"], arguments["maybe_expert_map"])
    ids = outputs["sorted_token_ids"].clone()
    for lora in _served(arguments["adapter_enabled"], arguments["lora_ids"]):
        mine = (arguments["token_lora_mapping"] == lora).repeat_interleave(arguments["topk_ids"].shape[1])
        part = _part(lora, arguments["max_num_tokens_padded"])
        own = torch.where(mine, experts, -1)
        ids[part] = _ascending(ids[part], own, arguments["num_experts"], arguments["block_size"])
    return {**outputs, "sorted_token_ids": ids}


def _ascending(ids: torch.Tensor, experts: torch.Tensor, num_experts: int, block_size: int) -> torch.Tensor:
    """ids, sorted within the rows of each expert and, as one more, within those after the last."""
    begins, blocks = _begins(experts, num_experts, block_size)
    place = torch.arange(len(ids), device=ids.device)
    segment = torch.searchsorted(torch.cat((begins, blocks.sum().reshape(1) * block_size)), place, right=True)
    keys = (segment << 33) + ids.long() + (1 << 32)
    return ((keys.sort().values & ((1 << 33) - 1)) - (1 << 32)).to(ids.dtype)


def prepare_routing(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Distinct experts for each token: among the first ``used`` where that is given, ``favourite`` always with them.

    An expert map keeps every ``keep_every``-th expert and renumbers them. Tokens have adapters from ``loras``, which
    names -1 for none; ``disabled`` ones are switched off.
    """
    ids, experts = tensors["topk_ids"], int(variables["experts"])
    weights = torch.rand(ids.shape[0], experts, generator=generator, device=generator.device)
    if variables["used"] is not None:
        weights[:, variables["used"] :] -= 2
    if variables["favourite"] is not None:
        weights[:, variables["favourite"]] += 4
    chosen = weights.topk(ids.shape[1]).indices
    order = torch.rand(ids.shape, generator=generator, device=generator.device).argsort(1)
    ids.copy_(chosen.gather(1, order))
    if (expert_map := tensors.get("maybe_expert_map")) is not None:
        kept = torch.arange(experts, device=generator.device) % variables["keep_every"] == 0
        expert_map.copy_(torch.where(kept, kept.cumsum(0) - 1, -1))
    if "lora_ids" in tensors:
        _prepare_adapters(tensors, variables, generator)


def _prepare_adapters(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    loras = torch.tensor(variables["loras"], device=generator.device)
    mapping = tensors["token_lora_mapping"]
    mapping.copy_(loras[torch.randint(0, len(loras), mapping.shape, generator=generator, device=generator.device)])
    used = torch.unique(mapping)
    tensors["lora_ids"].fill_(-1)
    tensors["lora_ids"][: len(used)] = used
    tensors["adapter_enabled"].fill_(1)
    for lora in variables["disabled"]:
        tensors["adapter_enabled"][lora] = 0
