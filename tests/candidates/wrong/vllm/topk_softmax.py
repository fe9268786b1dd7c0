import torch
import triton
import triton.language as tl


# breaks: What has been chosen gets the key 0, which is more than the others have where the bias is negative.
def chosen_get_zero(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, topk = topk_weights.shape
    p = gating_output.float().softmax(-1)
    keys = p.clone() if bias is None else p + bias
    for choice in range(topk):
        best = keys.argmax(-1, keepdim=True)
        topk_weights[:, choice : choice + 1] = p.gather(1, best)
        topk_indices[:, choice : choice + 1] = best.to(topk_indices.dtype)
        keys.scatter_(1, best, 0.0)
    if renormalize:
        topk_weights /= topk_weights.sum(-1, keepdim=True)
    token_expert_indices.copy_(torch.arange(tokens * topk, device=p.device).view(topk, tokens).T)


@triton.jit
def choose_eight_choices(
    w_ptr, i_ptr, t_ptr, x_ptr, bias_ptr, tokens, experts, topk, BIAS: tl.constexpr, NORM: tl.constexpr, B: tl.constexpr
):
    token = tl.program_id(0)
    e, lane = tl.arange(0, B), tl.arange(0, 8)
    x = tl.load(x_ptr + token * experts + e, mask=e < experts, other=float("-inf")).to(tl.float32)
    p = tl.exp(x - tl.max(x, axis=0))
    p = p / tl.sum(p, axis=0)
    key = p
    if BIAS:
        key = p + tl.load(bias_ptr + e, mask=e < experts, other=0.0)
    key = tl.where(e < experts, key, float("-inf"))
    weights, chosen = tl.zeros((8,), tl.float32), tl.zeros((8,), tl.int32)
    for k in range(topk):
        which = tl.min(tl.where(key == tl.max(key, axis=0), e, B), axis=0)
        weights = tl.where(lane == k, tl.sum(tl.where(e == which, p, 0.0), axis=0), weights)
        chosen = tl.where(lane == k, which, chosen)
        key = tl.where(e == which, float("-inf"), key)
    if NORM:
        weights = weights / tl.sum(weights, axis=0)
    tl.store(w_ptr + token * topk + lane, weights, mask=lane < topk)
    tl.store(i_ptr + token * topk + lane, chosen.to(i_ptr.dtype.element_ty), mask=lane < topk)
    tl.store(t_ptr + token * topk + lane, lane * tokens + token, mask=lane < topk)


# breaks: Choices are collected in eight lanes, further ones are not stored.
def eight_choices(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, experts = gating_output.shape
    choose_eight_choices[(tokens,)](
        topk_weights, topk_indices, token_expert_indices, gating_output, gating_output if bias is None else bias,
        tokens, experts, topk_weights.shape[1], BIAS=bias is not None, NORM=renormalize,
        B=triton.next_power_of_2(experts),
    )  # fmt: skip


@triton.jit
def choose_ties_are_struck_out_together(
    w_ptr, i_ptr, t_ptr, x_ptr, bias_ptr, tokens, experts, topk, BIAS: tl.constexpr, NORM: tl.constexpr, B: tl.constexpr
):
    token = tl.program_id(0)
    e = tl.arange(0, B)
    inside = e < experts
    x = tl.load(x_ptr + token * experts + e, mask=inside, other=float("-inf")).to(tl.float32)
    p = tl.exp(x - tl.max(x, axis=0))
    p = p / tl.sum(p, axis=0)
    key = p
    if BIAS:
        key = p + tl.load(bias_ptr + e, mask=inside, other=0.0)
    key = tl.where(inside, key, float("-inf"))
    total = 0.0
    for k in range(0, topk):
        best = tl.max(key, axis=0)
        which = tl.min(tl.where(key == best, e, B), axis=0)
        weight = tl.sum(tl.where(e == which, p, 0.0), axis=0)
        total += weight
        tl.store(w_ptr + token * topk + k, weight)
        tl.store(i_ptr + token * topk + k, which.to(i_ptr.dtype.element_ty))
        tl.store(t_ptr + token * topk + k, k * tokens + token)
        key = tl.where(key == best, float("-inf"), key)
    if NORM:
        for k in range(0, topk):
            tl.store(w_ptr + token * topk + k, tl.load(w_ptr + token * topk + k) / total)


# breaks: After each choice every expert with that probability is struck out, not only the one chosen.
def ties_are_struck_out_together(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, experts = gating_output.shape
    choose_ties_are_struck_out_together[(tokens,)](
        topk_weights, topk_indices, token_expert_indices, gating_output, gating_output if bias is None else bias,
        tokens, experts, topk_weights.shape[1], BIAS=bias is not None, NORM=renormalize,
        B=triton.next_power_of_2(experts),
    )  # fmt: skip
