"""topk_softmax: the softmax of a token over the experts, and its largest shares, found one after the other.

Without a bias the largest logits are looked for, as their order is that of the shares. A 16-bit logit and the number
of its expert fit into one integer, so that one maximum finds both; otherwise a second reduction finds the number.
"""

import triton
import triton.language as tl


@triton.jit
def _exp(x):
    """e^x for x <= 0, to about the last bit: x * log2(e) in two parts."""
    # Below -200 it is 0, and the parts of an infinite x would be NaN.
    x = tl.maximum(x, -200.0)
    high = x * 1.4426950408889634
    low = tl.fma(x, 1.4426950408889634, -high) + x * 1.925963033500692e-08
    return tl.exp2(high) * (1.0 + low * 0.6931471805599453)


@triton.jit
def _quotient(x, y):
    """x / y, rounded correctly; y: a number for each row of x."""
    return tl.div_rn(x, y[:, None] + tl.zeros(x.shape, tl.float32))


@triton.jit
def _swapped(bits):
    """From the 16 bits of a float to an integer in the same order, or back."""
    return tl.where(bits >= 0, bits, bits ^ 0x7FFF)


@triton.jit
def _packed_largest(gate, highest, total, expert, experts, topk, BLOCK: tl.constexpr, SLOTS: tl.constexpr):
    """Shares, numbers and the shares' sum of the topk largest 16-bit logits; of equal ones the first expert wins."""
    slot = tl.arange(0, SLOTS)[None, :]
    weights = tl.zeros((gate.shape[0], SLOTS), tl.float32)
    indices = tl.zeros((gate.shape[0], SLOTS), tl.int32)
    weight_sum = tl.zeros((gate.shape[0],), tl.float32)
    order = _swapped(gate.to(tl.int16, bitcast=True).to(tl.int32))
    key = (order << 16) | (BLOCK - 1 - expert)[None, :]
    key = tl.where((expert < experts)[None, :], key, -2147483648)
    for j in range(topk):
        best = tl.max(key, axis=1)
        index = BLOCK - 1 - (best & 0xFFFF)
        logit = _swapped(best >> 16).to(tl.int16).to(gate.dtype, bitcast=True).to(tl.float32)
        weight = tl.div_rn(_exp(logit - highest), total)
        weights = tl.where(slot == j, weight[:, None], weights)
        indices = tl.where(slot == j, index[:, None], indices)
        weight_sum += weight
        key = tl.where(key == best[:, None], -2147483648, key)
    return weights, indices, weight_sum


@triton.jit
def _largest(
    key, share, highest, total, expert, topk, BY_SHARE: tl.constexpr, BLOCK: tl.constexpr, SLOTS: tl.constexpr
):
    """Shares, numbers and the shares' sum of the topk largest keys, which are logits, or BY_SHARE: shares and bias."""
    slot = tl.arange(0, SLOTS)[None, :]
    weights = tl.zeros((key.shape[0], SLOTS), tl.float32)
    indices = tl.zeros((key.shape[0], SLOTS), tl.int32)
    weight_sum = tl.zeros((key.shape[0],), tl.float32)
    for j in range(topk):
        best = tl.max(key, axis=1)
        index = tl.min(tl.where(key == best[:, None], expert[None, :], BLOCK), axis=1)
        hit = expert[None, :] == index[:, None]
        weight = tl.sum(tl.where(hit, share, 0.0), axis=1) if BY_SHARE else tl.div_rn(_exp(best - highest), total)
        weights = tl.where(slot == j, weight[:, None], weights)
        indices = tl.where(slot == j, index[:, None], indices)
        weight_sum += weight
        key = tl.where(hit, float("-inf"), key)
    return weights, indices, weight_sum


@triton.jit
def _topk(
    weight_ptr, index_ptr, source_ptr, gate_ptr, bias_ptr, tokens, experts, topk,
    PACKED: tl.constexpr, RENORMALIZE: tl.constexpr, HAS_BIAS: tl.constexpr, WIDE: tl.constexpr,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, SLOTS: tl.constexpr,
):  # fmt: skip
    """ROWS tokens, whose experts all lie in BLOCK; SLOTS is topk, rounded up to a power of 2.

    WIDE: the tokens' numbers may leave 32 bits.
    """
    program = tl.program_id(0).to(tl.int64) if WIDE else tl.program_id(0)
    token = program * ROWS + tl.arange(0, ROWS)
    line = token.to(tl.int64)[:, None]
    expert = tl.arange(0, BLOCK)
    real = (expert < experts)[None, :]
    at = gate_ptr + line * experts + expert[None, :]
    gate = tl.load(at, mask=(token < tokens)[:, None] & real, other=0.0)
    key = tl.where(real, gate.to(tl.float32), float("-inf"))
    highest = tl.max(key, axis=1)
    share = tl.where(real, _exp(key - highest[:, None]), 0.0)
    total = tl.sum(share, axis=1)
    if PACKED:
        weights, indices, weight_sum = _packed_largest(gate, highest, total, expert, experts, topk, BLOCK, SLOTS)
    else:
        if HAS_BIAS:
            share = _quotient(share, total)
            key = share + tl.load(bias_ptr + expert, mask=expert < experts, other=0.0)[None, :]
            key = tl.where(real, key, float("-inf"))
        weights, indices, weight_sum = _largest(key, share, highest, total, expert, topk, HAS_BIAS, BLOCK, SLOTS)
    if RENORMALIZE:
        weights = _quotient(weights, tl.where(weight_sum > 0, weight_sum, 1.0))
    slot = tl.arange(0, SLOTS)[None, :]
    live = (token < tokens)[:, None] & (slot < topk)
    at = line * topk + slot
    tl.store(weight_ptr + at, weights, mask=live)
    tl.store(index_ptr + at, indices.to(index_ptr.dtype.element_ty), mask=live)
    tl.store(source_ptr + at, (slot * tokens + token[:, None]).to(tl.int32), mask=live)


def topk_softmax(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    """gating_output: (tokens, experts); the first three, (tokens, topk), are written; bias: (experts,) or None."""
    tokens, experts = gating_output.shape
    topk = topk_weights.shape[1]
    if topk_weights.numel() == 0:
        return
    block, slots = triton.next_power_of_2(experts), triton.next_power_of_2(topk)
    rows = max(1, min(128, 2048 // block, 4096 // slots))
    _topk[(triton.cdiv(tokens, rows),)](
        topk_weights, topk_indices, token_expert_indices, gating_output, bias, tokens, experts, topk,
        PACKED=bias is None and gating_output.element_size() == 2, RENORMALIZE=bool(renormalize),
        HAS_BIAS=bias is not None, WIDE=tokens >= 2**31 - rows, ROWS=rows, BLOCK=block, SLOTS=slots, num_warps=4,
    )  # fmt: skip
