"""grouped_topk: the best groups of experts by the sum of their two best scores, then the best experts of those groups.

Scores are compared as integers in the order of floats, so that equal ones go to the lower expert and NaN has a place.
The chosen experts' weights are computed once more in float64.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _order(x):
    """The integer that stands among integers as x does among floats."""
    bits = x.to(tl.int32, bitcast=True)
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)


@triton.jit
def _sigmoid(x):
    # exp(-x) of an argument reduced by a multiple of ln 2, in two parts: large ones keep their digits. Beyond 120
    # it is 0 or infinite, and the reduction would leave more than exp2 holds.
    x = tl.minimum(tl.maximum(x, -120.0), 120.0)
    power = tl.floor(-x * 1.4426950408889634 + 0.5)
    rest = -x - power * 0.693359375
    rest = rest - power * (-2.12194440054690583e-4)
    return 1.0 / (1.0 + tl.exp2(rest * 1.4426950408889634) * tl.exp2(power))


@triton.jit
def _best_groups(score, real, GROUPS: tl.constexpr, CHOSEN: tl.constexpr, PADDED: tl.constexpr, SIZE: tl.constexpr):
    """int32 (rows, PADDED), 1 for the CHOSEN of GROUPS groups whose two best scores have the largest sum."""
    last: tl.constexpr = 0x7FFFFFFF
    score = tl.reshape(tl.where(real[None, :], score, float("-inf")), [score.shape[0], PADDED, SIZE])
    place = tl.arange(0, SIZE)[None, None, :]
    best = tl.max(score, axis=2)
    at = tl.min(tl.where(score == best[:, :, None], place, last), axis=2)
    second = tl.max(tl.where(place == at[:, :, None], float("-inf"), score), axis=2)
    group = tl.arange(0, PADDED)[None, :]
    key = tl.where(group < GROUPS, _order(best + second), -2147483648)
    keep = tl.zeros([score.shape[0], PADDED], dtype=tl.int32)
    for _ in range(CHOSEN):
        largest = tl.max(key, axis=1)
        hit = group == tl.min(tl.where(key == largest[:, None], group, last), axis=1)[:, None]
        keep = tl.where(hit, 1, keep)
        key = tl.where(hit, -2147483648, key)
    return keep


@triton.jit
def _topk(
    score_ptr, bias_ptr, weight_ptr, index_ptr, tokens, experts, bias_stride, factor,
    GROUPS: tl.constexpr, SIZE: tl.constexpr, PADDED_GROUPS: tl.constexpr, PADDED_SIZE: tl.constexpr,
    CHOSEN: tl.constexpr, TOPK: tl.constexpr, PADDED_TOPK: tl.constexpr,
    SIGMOID: tl.constexpr, RENORMALIZE: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """ROWS tokens; GROUPS groups of SIZE experts, both padded to powers of two, CHOSEN of them stay."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    width: tl.constexpr = PADDED_GROUPS * PADDED_SIZE
    last: tl.constexpr = 0x7FFFFFFF
    i = tl.arange(0, width)
    group, place = i // PADDED_SIZE, i % PADDED_SIZE
    expert = group * SIZE + place
    real = (group < GROUPS) & (place < SIZE)
    inside = (row < tokens)[:, None] & real[None, :]
    score = tl.load(score_ptr + row[:, None] * experts + expert[None, :], mask=inside, other=0.0).to(tl.float32)
    if SIGMOID:
        score = _sigmoid(score)
    score += tl.load(bias_ptr + expert.to(tl.int64) * bias_stride, mask=real, other=0.0).to(tl.float32)[None, :]
    key = tl.where(real[None, :], _order(score), -2147483648)
    if CHOSEN < GROUPS:
        keep = _best_groups(score, real, GROUPS, CHOSEN, PADDED_GROUPS, PADDED_SIZE)
        key = tl.reshape(key, [ROWS, PADDED_GROUPS, PADDED_SIZE])
        key = tl.reshape(tl.where(keep[:, :, None] != 0, key, -2147483648), [ROWS, width])
    k = tl.arange(0, PADDED_TOPK)
    chosen = tl.zeros([ROWS, PADDED_TOPK], dtype=tl.int32)
    for rank in range(TOPK):
        largest = tl.max(key, axis=1)
        at = tl.min(tl.where(key == largest[:, None], i[None, :], last), axis=1)
        key = tl.where(i[None, :] == at[:, None], -2147483648, key)
        chosen = tl.where(k[None, :] == rank, at[:, None], chosen)
    chosen = chosen // PADDED_SIZE * SIZE + chosen % PADDED_SIZE
    inside = (row < tokens)[:, None] & (k < TOPK)[None, :]
    weight = tl.load(score_ptr + row[:, None] * experts + chosen, mask=inside, other=0.0).to(tl.float64)
    if SIGMOID:
        weight = 1.0 / (1.0 + tl.exp(-weight))
    scaled = weight * factor
    if RENORMALIZE:
        scaled = scaled / (tl.sum(tl.where(inside, weight, 0.0), axis=1) + 1e-20)[:, None]
    out = row[:, None] * TOPK + k[None, :]
    tl.store(weight_ptr + out, scaled.to(tl.float32), mask=inside)
    tl.store(index_ptr + out, chosen, mask=inside)


def grouped_topk(scores, n_group, topk_group, topk, renormalize, routed_scaling_factor, bias, scoring_func):
    """scores: (tokens, experts), dense; bias: (experts,). Returns weights float32 and experts int32, (tokens, topk).

    scoring_func 1 takes the scores' sigmoid. The bias counts for the choice only, not for the weights.
    """
    tokens, experts = scores.shape
    weights = torch.empty((tokens, topk), dtype=torch.float32, device=scores.device)
    indices = torch.empty((tokens, topk), dtype=torch.int32, device=scores.device)
    if tokens == 0 or topk == 0:
        return weights, indices
    if topk_group >= n_group:
        n_group = topk_group = 1  # all groups stay: the experts are one group
    size = experts // n_group
    groups, padded = triton.next_power_of_2(n_group), triton.next_power_of_2(size)
    rows = min(max(1, min(8, 2048 // (groups * padded))), 8 if tokens >= 1024 else 4)
    _topk[(triton.cdiv(tokens, rows),)](
        scores, bias, weights, indices, tokens, experts, bias.stride(0), float(routed_scaling_factor),
        GROUPS=n_group, SIZE=size, PADDED_GROUPS=groups, PADDED_SIZE=padded, CHOSEN=topk_group,
        TOPK=topk, PADDED_TOPK=triton.next_power_of_2(topk), SIGMOID=int(scoring_func) == 1,
        RENORMALIZE=bool(renormalize), ROWS=rows, num_warps=4,
    )  # fmt: skip
    return weights, indices
