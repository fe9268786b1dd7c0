"""References of vLLM's choice of the experts that a token goes to: top k of a softmax, and grouped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.aten import SMALLEST_NORMAL_SCALE, chained
from kgbench.baselines.references.vllm_moe import Expectations


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
