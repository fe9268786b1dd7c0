"""merge_attn_states: two attention results over disjoint keys, each weighted by its share of the exponents' sum.

A program merges some tokens of one head. All its loads come first, so that they are under way together.
"""

import triton
import triton.language as tl


@triton.jit
def _on_grid(x):
    """The nearest number of float8_e4m3fn, of a tie the even one: Triton's interpreter cuts off where GPUs round."""
    x = tl.minimum(tl.maximum(x, -448.0), 448.0)
    power = (x.to(tl.int32, bitcast=True) & 0x7F800000).to(tl.float32, bitcast=True)
    step = tl.maximum(power, 0.015625) * 0.125
    per_one = (0x7F000000 - step.to(tl.int32, bitcast=True)).to(tl.float32, bitcast=True)
    return ((x * per_one + 12582912.0) - 12582912.0) * step  # 1.5 * 2²³, above which float32 has no fractions.


@triton.jit
def _exp(x):
    """exp(x) for x <= 0 to about a unit in the last place: what x * log2(e) loses by rounding is made good."""
    x = tl.maximum(x, -200.0)
    power = x * 1.4426950408889634
    lost = tl.fma(x, 1.4426950408889634, -power) + x * 1.925963033500692e-08
    return tl.exp2(power) * (1.0 + lost * 0.6931471805599453)


@triton.jit
def _log_of_1_and(e):
    """log(1 + e), also where the sum rounds e away."""
    whole = 1.0 + e
    rounded = whole - 1.0
    none = rounded == 0.0
    return tl.where(none, e, tl.log(whole) * tl.div_rn(e, tl.where(none, 1.0, rounded)))


@triton.jit
def _merge(
    out_ptr, out_lse_ptr, prefix_ptr, prefix_lse_ptr, suffix_ptr, suffix_lse_ptr, scale_ptr, tokens, heads, n, merged,
    out_token, out_head, part_token, part_head,
    HAS_LSE: tl.constexpr, HAS_SCALE: tl.constexpr, INTERPRETED: tl.constexpr, TOKENS: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Tokens from ``merged`` on have no prefix."""
    head = (tl.program_id(0) % heads).to(tl.int64)
    token = tl.program_id(0) // heads * TOKENS + tl.arange(0, TOKENS)
    live = token < tokens
    both = live & (token < merged)
    lse_at = head * tokens + token
    prefix_lse = tl.load(prefix_lse_ptr + lse_at, mask=both, other=0.0)
    suffix_lse = tl.load(suffix_lse_ptr + lse_at, mask=live, other=0.0)
    if HAS_SCALE:
        scale = tl.load(scale_ptr)
    column = tl.arange(0, BLOCK)[None, :]
    at = (token.to(tl.int64) * part_token + head * part_head)[:, None] + column
    x = tl.load(prefix_ptr + at, mask=both[:, None] & (column < n), other=0.0)
    y = tl.load(suffix_ptr + at, mask=live[:, None] & (column < n), other=0.0)

    # An infinity of either sign says that there are no keys.
    nothing = float("-inf")
    p = tl.where(prefix_lse == float("inf"), nothing, prefix_lse)
    s = tl.where(suffix_lse == float("inf"), nothing, suffix_lse)
    most = tl.maximum(p, s)
    empty = most == nothing
    shift = tl.where(empty, 0.0, most)
    p, s = _exp(p - shift), _exp(s - shift)
    total = tl.where(empty, 1.0, p + s)
    of_prefix = tl.where(both, tl.where(empty, 1.0, tl.div_rn(p, total)), 0.0)
    of_suffix = tl.where(both, tl.div_rn(s, total), 1.0)
    if HAS_LSE:
        # The larger of the two exponentials is 1.
        lse = tl.where(empty, nothing, shift + _log_of_1_and(tl.minimum(p, s)))
        tl.store(out_lse_ptr + lse_at, tl.where(both, lse, suffix_lse), mask=live)
    result = x.to(tl.float32) * of_prefix[:, None] + y.to(tl.float32) * of_suffix[:, None]
    if HAS_SCALE:
        result = result * tl.div_rn(1.0, scale)
        if INTERPRETED:
            result = _on_grid(result)
    at = (token.to(tl.int64) * out_token + head * out_head)[:, None] + column
    tl.store(out_ptr + at, result.to(out_ptr.dtype.element_ty), mask=live[:, None] & (column < n))


def merge_attn_states(
    output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse, prefill_tokens_with_context,
    output_scale=None,
):  # fmt: skip
    """output, prefix_output, suffix_output: (tokens, heads, n), the parts alike in strides; lse: (heads, tokens)."""
    tokens, heads, n = output.shape
    merged = tokens if prefill_tokens_with_context is None else prefill_tokens_with_context
    block = triton.next_power_of_2(n)
    each = max(1, min(64, 2048 // block))
    _merge[(triton.cdiv(tokens, each) * heads,)](
        output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse, output_scale, tokens, heads, n,
        merged, output.stride(0), output.stride(1), prefix_output.stride(0), prefix_output.stride(1),
        HAS_LSE=output_lse is not None, HAS_SCALE=output_scale is not None, INTERPRETED=not output.is_cuda,
        TOKENS=each, BLOCK=block, num_warps=4,
    )  # fmt: skip
