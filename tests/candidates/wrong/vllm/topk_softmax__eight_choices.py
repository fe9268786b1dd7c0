# outcome: wrong value
# breaks: Choices are collected in eight lanes, further ones are not stored.

import triton
import triton.language as tl


@triton.jit
def choose(
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


def topk_softmax(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, experts = gating_output.shape
    choose[(tokens,)](
        topk_weights, topk_indices, token_expert_indices, gating_output, gating_output if bias is None else bias,
        tokens, experts, topk_weights.shape[1], BIAS=bias is not None, NORM=renormalize,
        B=triton.next_power_of_2(experts),
    )  # fmt: skip
