"""topk_softmax: the softmax of a token over the experts, and its largest shares, found one after the other."""

import triton
import triton.language as tl


@triton.jit
def _topk(
    weight_ptr, index_ptr, source_ptr, gate_ptr, bias_ptr, tokens, experts,
    TOPK: tl.constexpr, RENORMALIZE: tl.constexpr, HAS_BIAS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
    SLOTS: tl.constexpr,
):  # fmt: skip
    """ROWS tokens, whose experts all lie in BLOCK; SLOTS is TOPK, rounded up to a power of 2."""
    token = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    expert = tl.arange(0, BLOCK)[None, :]
    inside = (token < tokens) & (expert < experts)
    gate = tl.load(gate_ptr + token * experts + expert, mask=inside, other=0.0).to(tl.float32)
    gate = tl.where(expert < experts, gate, float("-inf"))
    share = tl.exp(gate - tl.max(gate, axis=1)[:, None])
    share = share / tl.sum(share, axis=1)[:, None]
    key = share
    if HAS_BIAS:
        key = share + tl.load(bias_ptr + expert, mask=expert < experts, other=0.0)
    key = tl.where(expert < experts, key, float("-inf"))
    slot = tl.arange(0, SLOTS)[None, :]
    weights = tl.zeros((ROWS, SLOTS), tl.float32)
    indices = tl.zeros((ROWS, SLOTS), tl.int32)
    for j in range(TOPK):
        best = tl.argmax(key, axis=1)[:, None]
        found = tl.sum(tl.where(expert == best, share, 0.0), axis=1)[:, None]
        weights = tl.where(slot == j, found, weights)
        indices = tl.where(slot == j, best, indices)
        key = tl.where(expert == best, float("-inf"), key)
    if RENORMALIZE:
        weights = weights / tl.sum(weights, axis=1)[:, None]
    live = (token < tokens) & (slot < TOPK)
    tl.store(weight_ptr + token * TOPK + slot, weights, mask=live)
    tl.store(index_ptr + token * TOPK + slot, indices.to(index_ptr.dtype.element_ty), mask=live)
    tl.store(source_ptr + token * TOPK + slot, (slot * tokens + token).to(tl.int32), mask=live)


def topk_softmax(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    """gating_output: (tokens, experts); the first three, (tokens, topk), are written; bias: (experts,) or None."""
    tokens, experts = gating_output.shape
    topk = topk_weights.shape[1]
    block = triton.next_power_of_2(experts)
    rows = max(1, min((1024 if gating_output.is_cuda else 1 << 16) // block, triton.next_power_of_2(tokens)))
    _topk[(triton.cdiv(tokens, rows),)](
        topk_weights, topk_indices, token_expert_indices, gating_output, bias, tokens, experts, TOPK=topk,
        RENORMALIZE=bool(renormalize), HAS_BIAS=bias is not None, ROWS=rows, BLOCK=block,
        SLOTS=triton.next_power_of_2(topk), num_warps=4,
    )  # fmt: skip
