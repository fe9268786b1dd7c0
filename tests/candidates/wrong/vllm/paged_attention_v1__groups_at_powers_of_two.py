# outcome: wrong value
# breaks: The query heads of a key head are taken to begin at multiples of their number rounded up to a power of two.

import triton
import triton.language as tl


@triton.jit
def attention(
    out_ptr, q_ptr, k_ptr, v_ptr, table_ptr, len_ptr, slope_ptr, scale, width, q_row, heads, kv_heads, size,
    ALIBI: tl.constexpr, X: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr, TOKENS: tl.constexpr,
    GROUP: tl.constexpr,
):  # fmt: skip
    s, kv = tl.program_id(0), tl.program_id(1)
    length = tl.load(len_ptr + s)
    h = kv * GROUP + tl.arange(0, GROUP)
    t = tl.arange(0, TOKENS)
    d = tl.arange(0, D)
    live, inside = t < length, (h < heads)[:, None] & (d < size)[None, :]
    block = tl.load(table_ptr + s * width + t // BLOCK, mask=live, other=0).to(tl.int64)
    q = tl.load(q_ptr + s * q_row + h[:, None] * size + d[None, :], mask=inside, other=0.0).to(tl.float32)
    base = (block * kv_heads + kv)[:, None] * size * BLOCK
    both = live[:, None] & (d < size)[None, :]
    k_at = base + (d // X)[None, :] * BLOCK * X + (t % BLOCK)[:, None] * X + (d % X)[None, :]
    k = tl.load(k_ptr + k_at, mask=both, other=0.0).to(tl.float32)
    logit = tl.sum(q[:, None, :] * k[None, :, :], axis=2) * scale
    if ALIBI:
        slope = tl.load(slope_ptr + h, mask=h < heads, other=0.0)
        logit += slope[:, None] * (t - length + 1)[None, :]
    logit = tl.where(live[None, :], logit, float("-inf"))
    p = tl.exp(logit - tl.max(logit, axis=1)[:, None])
    p = p / tl.sum(p, axis=1)[:, None]
    v = tl.load(v_ptr + base + d[None, :] * BLOCK + (t % BLOCK)[:, None], mask=both, other=0.0).to(tl.float32)
    out = tl.sum(p[:, :, None] * v[None, :, :], axis=1)
    at = (s * heads + h)[:, None] * size + d[None, :]
    tl.store(out_ptr + at, out.to(out_ptr.dtype.element_ty), mask=inside)


def paged_attention_v1(
    out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens, block_size, max_seq_len,
    alibi_slopes, kv_cache_dtype, k_scale, v_scale, *blocksparse,
):  # fmt: skip
    sequences, heads, size = query.shape
    x = key_cache.shape[-1]
    if kv_cache_dtype != "auto":
        key_cache, value_cache = key_cache.float() * k_scale, value_cache.float() * v_scale
    attention[(sequences, num_kv_heads)](
        out, query, key_cache, value_cache, block_tables, seq_lens,
        k_scale if alibi_slopes is None else alibi_slopes, float(scale), block_tables.shape[1], query.stride(0),
        heads, num_kv_heads, size, ALIBI=alibi_slopes is not None, X=x, BLOCK=block_size,
        D=triton.next_power_of_2(size), TOKENS=triton.next_power_of_2(max_seq_len),
        GROUP=triton.next_power_of_2(heads // num_kv_heads),
    )  # fmt: skip
