"""merge_attn_states: two attention results over disjoint keys, each weighted by its share of the exponents' sum."""

import torch
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
def _widened(x, WORDS: tl.constexpr):
    """float32 of what was loaded, WORDS: the bits of bfloat16."""
    return (x.to(tl.int32) << 16).to(tl.float32, bitcast=True) if WORDS else x.to(tl.float32)


@triton.jit
def _bits_of_bfloat16(x):
    bits = x.to(tl.int32, bitcast=True)
    rounded = bits + 0x7FFF + ((bits >> 16) & 1)
    return (tl.where(x == x, rounded, bits | 0x400000) >> 16).to(tl.int16)


@triton.jit
def _merge(
    out_ptr, out_lse_ptr, prefix_ptr, prefix_lse_ptr, suffix_ptr, suffix_lse_ptr, scale_ptr, tokens, heads, n, merged,
    out_token, out_head, part_token, part_head,
    HAS_LSE: tl.constexpr, HAS_SCALE: tl.constexpr, WORDS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """ROWS rows, a row being one head of one token; tokens from ``merged`` on have no prefix.

    WORDS: bfloat16 comes as words of 16 bits, since Triton's interpreter loses its denormals.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    token, head = row // heads, row % heads
    live = row < tokens * heads
    both = live & (token < merged)
    nothing = float("-inf")
    given = tl.load(suffix_lse_ptr + head * tokens + token, mask=live, other=0.0)
    p = tl.load(prefix_lse_ptr + head * tokens + token, mask=both, other=nothing)
    # An infinity of either sign says that there are no keys.
    p = tl.where(p == float("inf"), nothing, p)
    s = tl.where(both & (given == float("inf")), nothing, given)
    most = tl.maximum(p, s)
    shift = tl.where(most == nothing, 0.0, most)
    p, s = tl.exp(p - shift), tl.exp(s - shift)
    total = p + s
    empty = total == 0.0
    if HAS_LSE:
        lse = tl.where(empty, nothing, shift + tl.log(tl.where(empty, 1.0, total)))
        tl.store(out_lse_ptr + head * tokens + token, tl.where(both, lse, given), mask=live)
    of_prefix = tl.where(empty, 1.0, p / tl.where(empty, 1.0, total))
    of_suffix = tl.where(empty, 0.0, s / tl.where(empty, 1.0, total))
    column = tl.arange(0, BLOCK)[None, :]
    at = (token * part_token + head * part_head)[:, None] + column
    x = _widened(tl.load(prefix_ptr + at, mask=both[:, None] & (column < n), other=0), WORDS)
    y = _widened(tl.load(suffix_ptr + at, mask=live[:, None] & (column < n), other=0), WORDS)
    result = tl.where(both[:, None], of_prefix[:, None] * x + of_suffix[:, None] * y, y)
    if HAS_SCALE:
        result = _on_grid(result / tl.load(scale_ptr)).to(out_ptr.dtype.element_ty)
    elif WORDS:
        result = _bits_of_bfloat16(result)
    else:
        result = result.to(out_ptr.dtype.element_ty)
    at = (token * out_token + head * out_head)[:, None] + column
    tl.store(out_ptr + at, result, mask=live[:, None] & (column < n))


def merge_attn_states(
    output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse, prefill_tokens_with_context,
    output_scale=None,
):  # fmt: skip
    """output, prefix_output, suffix_output: (tokens, heads, n), the parts alike in strides; lse: (heads, tokens)."""
    tokens, heads, n = output.shape
    merged = tokens if prefill_tokens_with_context is None else prefill_tokens_with_context
    words = prefix_output.dtype == torch.bfloat16 and not output.is_cuda
    if words:
        prefix_output, suffix_output = prefix_output.view(torch.int16), suffix_output.view(torch.int16)
        output = output if output_scale is not None else output.view(torch.int16)
    block = triton.next_power_of_2(n)
    rows = max(1, min((2048 if output.is_cuda else 1 << 17) // block, triton.next_power_of_2(tokens * heads)))
    _merge[(triton.cdiv(tokens * heads, rows),)](
        output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse, output_scale, tokens, heads, n,
        merged, output.stride(0), output.stride(1), prefix_output.stride(0), prefix_output.stride(1),
        HAS_LSE=output_lse is not None, HAS_SCALE=output_scale is not None, WORDS=words,
        ROWS=rows, BLOCK=block, num_warps=4,
    )  # fmt: skip
