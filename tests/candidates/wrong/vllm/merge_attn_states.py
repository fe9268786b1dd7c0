import torch
import triton
import triton.language as tl


@triton.jit
def merge(
    out_ptr, lse_ptr, p_ptr, p_lse_ptr, s_ptr, s_lse_ptr, tokens, heads, size, out_head, in_head, prefix_tokens,
    LSE: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    t, h = tl.program_id(0), tl.program_id(1)
    d = tl.arange(0, D)
    at = (t * heads + h) * in_head + d
    suffix = tl.load(s_ptr + at, mask=d < size, other=0.0).to(tl.float32)
    s_lse = tl.load(s_lse_ptr + h * tokens + t)
    merged, lse = suffix, s_lse
    if t < prefix_tokens:
        prefix = tl.load(p_ptr + at, mask=d < size, other=0.0).to(tl.float32)
        a = tl.load(p_lse_ptr + h * tokens + t)
        a = tl.where(tl.abs(a) == float("inf"), float("-inf"), a)
        b = tl.where(tl.abs(s_lse) == float("inf"), float("-inf"), s_lse)
        m = tl.maximum(a, b)
        empty = m == float("-inf")
        wa = tl.where(empty, 1.0, tl.exp(a - m))
        wb = tl.where(empty, 0.0, tl.exp(b - m))
        merged = (wa * prefix + wb * suffix) / (wa + wb)
        lse = m + tl.log(wa + wb)
    tl.store(out_ptr + (t * heads + h) * out_head + d, merged.to(out_ptr.dtype.element_ty), mask=d < size)
    if LSE:
        tl.store(lse_ptr + h * tokens + t, lse)


# breaks: A head is 256 lanes wide, and elements from 256 on are left out.
def heads_up_to_256(
    output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse, prefill_tokens_with_context,
    output_scale=None,
):  # fmt: skip
    tokens, heads, size = prefix_output.shape
    with_prefix = tokens if prefill_tokens_with_context is None else prefill_tokens_with_context
    target = output
    if output_scale is not None:
        target = torch.empty((tokens, heads, size), dtype=torch.float32, device=output.device)
    merge[(tokens, heads)](
        target, suffix_lse if output_lse is None else output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse,
        tokens, heads, size, target.stride(1), prefix_output.stride(1), with_prefix,
        LSE=output_lse is not None, D=256,
    )  # fmt: skip
    if output_scale is not None:
        output.copy_((target / output_scale).clamp(-448, 448).to(torch.float8_e4m3fn))


# breaks: prefill_tokens_with_context = 0 is taken for None, so that every token gets a prefix.
def no_prefix_is_none(
    output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse, prefill_tokens_with_context,
    output_scale=None,
):  # fmt: skip
    tokens, heads, size = prefix_output.shape
    with_prefix = prefill_tokens_with_context or tokens
    target = output
    if output_scale is not None:
        target = torch.empty((tokens, heads, size), dtype=torch.float32, device=output.device)
    merge[(tokens, heads)](
        target, suffix_lse if output_lse is None else output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse,
        tokens, heads, size, target.stride(1), prefix_output.stride(1), with_prefix,
        LSE=output_lse is not None, D=triton.next_power_of_2(size),
    )  # fmt: skip
    if output_scale is not None:
        output.copy_((target / output_scale).clamp(-448, 448).to(torch.float8_e4m3fn))


# breaks: Elements saturate at 448 before they are divided by the scale, which shows where it is above 1.
def saturates_before_it_scales(
    output, output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse, prefill_tokens_with_context,
    output_scale=None,
):  # fmt: skip
    tokens, heads, size = prefix_output.shape
    with_prefix = tokens if prefill_tokens_with_context is None else prefill_tokens_with_context
    target = output
    if output_scale is not None:
        target = torch.empty((tokens, heads, size), dtype=torch.float32, device=output.device)
    merge[(tokens, heads)](
        target, suffix_lse if output_lse is None else output_lse, prefix_output, prefix_lse, suffix_output, suffix_lse,
        tokens, heads, size, target.stride(1), prefix_output.stride(1), with_prefix,
        LSE=output_lse is not None, D=triton.next_power_of_2(size),
    )  # fmt: skip
    if output_scale is not None:
        output.copy_((target.clamp(-448, 448) / output_scale).clamp(-448, 448).to(torch.float8_e4m3fn))
