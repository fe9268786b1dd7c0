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
from kgbench.baselines.references.aten import SMALLEST_NORMAL_SCALE, chained, finite

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
    """ids, sorted within the rows of each expert and, as one more, within those behind the last."""
    begins, blocks = _begins(experts, num_experts, block_size)
    place = torch.arange(len(ids), device=ids.device)
    segment = torch.searchsorted(torch.cat((begins, blocks.sum().reshape(1) * block_size)), place, right=True)
    keys = (segment << 33) + ids.long() + (1 << 32)
    return ((keys.sort().values & ((1 << 33) - 1)) - (1 << 32)).to(ids.dtype)


def prepare_routing(
    tensors: Mapping[str, torch.Tensor], variables: Mapping[str, Any], generator: torch.Generator
) -> None:
    """Distinct experts for each token: among the first ``used`` where that is given, ``favourite`` always with them.

    An expert map keeps every ``keep_every``-th expert and numbers them anew. Tokens have adapters from ``loras``, which
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


# --- which experts a token goes to ---


def topk_softmax(
    topk_indices: torch.Tensor,
    gating_output: torch.Tensor,
    renormalize: bool,
    bias: torch.Tensor | None,
    **_: Any,
) -> Expectations:
    """The experts with the largest probabilities, or probabilities plus bias, and their probabilities."""
    tokens, topk = topk_indices.shape
    ids = _largest(_choices(gating_output, bias), topk)
    weights, scale = _softmax_weights(gating_output, ids, renormalize)
    column = torch.arange(topk, device=ids.device) * tokens
    rows = torch.arange(tokens, device=ids.device)[:, None] + column
    return {
        "topk_weights": Expected(weights, scale),
        "topk_indices": Expected(ids.to(topk_indices.dtype)),
        "token_expert_indices": Expected(rows.to(torch.int32)),
    }


def topk_softmax_plain(
    topk_weights: torch.Tensor,
    topk_indices: torch.Tensor,
    token_expert_indices: torch.Tensor,
    gating_output: torch.Tensor,
    renormalize: bool,
    bias: torch.Tensor | None,
) -> None:
    """``topk_softmax`` in float32."""
    probabilities = torch.softmax(gating_output.float(), dim=-1)
    choices = probabilities if bias is None else probabilities + bias
    topk_indices.copy_(choices.topk(topk_indices.shape[1], dim=-1).indices)
    weights = probabilities.gather(1, topk_indices.long())
    topk_weights.copy_(weights / weights.sum(-1, keepdim=True) if renormalize else weights)
    torch.arange(token_expert_indices.numel(), out=token_expert_indices.view(-1))
    token_expert_indices.copy_(token_expert_indices.reshape(topk_indices.shape[1], -1).T.clone())


def _largest(choices: torch.Tensor, count: int) -> torch.Tensor:
    """int64 (rows, count): places of the largest of each row, largest first, of equal ones the first."""
    return choices.sort(dim=-1, descending=True, stable=True).indices[:, :count]


def _choices(gating_output: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    """What experts are chosen by."""
    probabilities = torch.softmax(gating_output, dim=-1)
    return probabilities if bias is None else probabilities + bias


def _softmax_weights(
    gating_output: torch.Tensor, ids: torch.Tensor, renormalize: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights of chosen experts and their error scale: rounding of x - max is what exp amplifies.

    Beside the limit's 16 units of roundoff the sum may be off by ``chained``.
    """
    shifted = gating_output - gating_output.amax(-1, keepdim=True)
    weights = torch.softmax(gating_output, dim=-1).gather(1, ids)
    scale = weights * (1 + shifted.gather(1, ids).abs() + chained(gating_output.shape[1]) / 16)
    if renormalize:
        total = weights.sum(-1, keepdim=True)
        total = torch.where(total > 0, total, 1.0)
        # Choices by bias may leave only small probabilities, whose relative errors are all the sum has.
        blur = scale.sum(-1, keepdim=True) / total
        weights, scale = weights / total, scale / total + weights / total * blur
    return weights, scale.clamp_min(SMALLEST_NORMAL_SCALE)


def canonical_topk_softmax(outputs: dict[str, torch.Tensor], arguments: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Of experts that are equal but for rounding, those that the reference takes, with weights as far off as given."""
    gating, bias = arguments["gating_output"], arguments["bias"]
    ids, choices = outputs["topk_indices"].long(), _choices(gating, bias)
    right = _largest(choices, ids.shape[1])
    if torch.equal(ids, right):
        return outputs
    shifted = gating - gating.amax(-1, keepdim=True)
    near = torch.softmax(gating, dim=-1) * (1 + shifted.abs()) * 2.0**-20 + SMALLEST_NORMAL_SCALE
    if bias is not None:
        near = near + 2.0**-22 * (bias.abs() + choices.abs())
    known = _are_distinct(ids, gating.shape[1])
    safe = torch.where(known[:, None], ids, right)
    alike = ((choices.gather(1, safe) - choices.gather(1, right)).abs() <= _either(near, safe, right)).all(-1)
    renormalize = bool(arguments["renormalize"])
    own = _softmax_weights(gating, safe, renormalize)[0]
    wanted = _softmax_weights(gating, right, renormalize)[0]
    return {
        **outputs,
        **_replaced(("topk_weights", "topk_indices"), outputs, known & alike, right, own, wanted),
    }


def _are_distinct(ids: torch.Tensor, experts: int) -> torch.Tensor:
    """bool (rows,): every number of the row is an expert's, and none stands twice."""
    ordered = ids.sort(dim=-1).values
    repeated = (ordered[:, 1:] == ordered[:, :-1]).any(-1)
    return ((ids >= 0) & (ids < experts)).all(-1) & ~repeated


def _either(near: torch.Tensor, ids: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """How far the choices by two lists of experts may be apart, place by place."""
    return near.gather(1, ids) + near.gather(1, right)


def _replaced(
    names: tuple[str, str],
    outputs: Mapping[str, torch.Tensor],
    right_rows: torch.Tensor,
    right: torch.Tensor,
    own: torch.Tensor,
    wanted: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """Weights and experts with right rows in the reference's form; ``own`` and ``wanted``: what weights should be."""
    weights, ids = outputs[names[0]], outputs[names[1]]
    ratio = torch.where(own > 0, wanted / own, 1.0)
    moved = torch.where(own == wanted, weights.double(), weights.double() * ratio)
    return {
        names[0]: torch.where(right_rows[:, None], moved, weights.double()),
        names[1]: torch.where(right_rows[:, None], right.to(ids.dtype), ids),
    }


def grouped_topk(
    scores: torch.Tensor,
    n_group: int,
    topk_group: int,
    topk: int,
    renormalize: bool,
    routed_scaling_factor: float,
    bias: torch.Tensor,
    scoring_func: int,
) -> tuple[Expected, Expected]:
    """The best experts of the best groups; a group counts as much as its two best experts."""
    values = torch.sigmoid(scores) if scoring_func else scores
    choices = values + bias
    groups = _largest(_group_scores(choices, n_group), topk_group)
    ids = _largest(_within(choices, n_group, groups), topk)
    weights, factor = _group_weights(values, ids, renormalize, routed_scaling_factor)
    # A sigmoid may be off by units of 1, however small it is.
    return Expected(weights, factor * (1 + topk * values.gather(1, ids))), Expected(ids.to(torch.int32))


def grouped_topk_plain(
    scores: torch.Tensor,
    n_group: int,
    topk_group: int,
    topk: int,
    renormalize: bool,
    routed_scaling_factor: float,
    bias: torch.Tensor,
    scoring_func: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``grouped_topk`` in float32."""
    weights, ids = grouped_topk(
        scores.float(), n_group, topk_group, topk, renormalize, routed_scaling_factor, bias.float(), scoring_func
    )
    return weights.value, ids.value


def _group_scores(choices: torch.Tensor, n_group: int) -> torch.Tensor:
    """(rows, n_group): the sum of each group's two largest."""
    return choices.reshape(len(choices), n_group, -1).topk(2, dim=-1).values.sum(-1)


def _within(choices: torch.Tensor, n_group: int, groups: torch.Tensor) -> torch.Tensor:
    """Choices, -inf outside of the chosen groups (rows, chosen)."""
    chosen = torch.zeros(len(choices), n_group, dtype=torch.bool, device=choices.device).scatter_(1, groups, True)
    return choices.masked_fill(~chosen.repeat_interleave(choices.shape[1] // n_group, 1), float("-inf"))


def _group_weights(
    values: torch.Tensor, ids: torch.Tensor, renormalize: bool, routed_scaling_factor: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights of chosen experts, and what their values are multiplied by."""
    chosen = values.gather(1, ids)
    factor = torch.full_like(chosen, routed_scaling_factor)
    if renormalize:
        factor = factor / (chosen.sum(-1, keepdim=True) + 1e-20)
    return chosen * factor, factor


def canonical_grouped_topk(outputs: dict[str, torch.Tensor], arguments: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Of groups and experts that are equal but for rounding, those that the reference takes.

    Experts that another reading of near-equal groups allows are right too: the groups are then those that must be
    chosen, those of the given experts, and of the others that may be chosen those that would contribute least.
    """
    n_group, topk_group, topk = arguments["n_group"], arguments["topk_group"], arguments["topk"]
    values = torch.sigmoid(arguments["scores"]) if arguments["scoring_func"] else arguments["scores"]
    bias = arguments["bias"]
    choices, ids = values + bias, outputs["return[1]"].long()
    group_scores = _group_scores(choices, n_group)
    right = _largest(_within(choices, n_group, _largest(group_scores, topk_group)), topk)
    if torch.equal(ids, right):
        return outputs
    sigmoid_error = 2.0**-21 if arguments["scoring_func"] else 0.0
    near = sigmoid_error + 2.0**-22 * (values.abs() + bias.abs())
    group_near = 4 * near.reshape(len(near), n_group, -1).amax(-1)
    known = _are_distinct(ids, choices.shape[1])
    safe = torch.where(known[:, None], ids, right)
    last = group_scores.sort(dim=-1, descending=True).values[:, topk_group - 1 : topk_group]
    possible = group_scores >= last - group_near
    following = group_scores.sort(dim=-1, descending=True).values[:, topk_group : topk_group + 1]
    sure = group_scores > following + group_near if following.shape[1] else torch.ones_like(possible)
    given = torch.zeros_like(possible).scatter_(1, safe // (choices.shape[1] // n_group), True)
    fitting = (given & ~possible).logical_not().all(-1) & ((sure | given).sum(-1) <= topk_group)
    least = -choices.reshape(len(choices), n_group, -1).amax(-1)
    rank = torch.where(sure | given, float("inf"), torch.where(possible, least, float("-inf")))
    best = _largest(_within(choices, n_group, _largest(rank, topk_group)), topk)
    alike = ((choices.gather(1, safe) - choices.gather(1, best)).abs() <= _either(near, safe, best)).all(-1)
    settings = arguments["renormalize"], arguments["routed_scaling_factor"]
    own, wanted = (_group_weights(values, each, *settings)[0] for each in (safe, right))
    return _replaced(("return[0]", "return[1]"), outputs, known & fitting & alike, right, own, wanted)
