import torch
import triton
import triton.language as tl


@triton.jit
def attention_groups_at_powers_of_two(
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


# breaks: The query heads of a key head are taken to begin at multiples of their number rounded up to a power of two.
def groups_at_powers_of_two(
    out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens, block_size, max_seq_len,
    alibi_slopes, kv_cache_dtype, k_scale, v_scale, *blocksparse,
):  # fmt: skip
    sequences, heads, size = query.shape
    x = key_cache.shape[-1]
    if kv_cache_dtype != "auto":
        key_cache, value_cache = key_cache.float() * k_scale, value_cache.float() * v_scale
    attention_groups_at_powers_of_two[(sequences, num_kv_heads)](
        out, query, key_cache, value_cache, block_tables, seq_lens,
        k_scale if alibi_slopes is None else alibi_slopes, float(scale), block_tables.shape[1], query.stride(0),
        heads, num_kv_heads, size, ALIBI=alibi_slopes is not None, X=x, BLOCK=block_size,
        D=triton.next_power_of_2(size), TOKENS=triton.next_power_of_2(max_seq_len),
        GROUP=triton.next_power_of_2(heads // num_kv_heads),
    )  # fmt: skip


# breaks: The softmax takes exp of the logits as they are, which overflows from 88 on.
def no_maximum_subtracted(
    out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens, block_size, max_seq_len,
    alibi_slopes, kv_cache_dtype, k_scale, v_scale, *blocksparse,
):  # fmt: skip
    group = query.shape[1] // num_kv_heads
    fp8 = kv_cache_dtype != "auto"
    for s, length in enumerate(seq_lens.tolist()):
        blocks = block_tables[s, : -(-length // block_size)].long()
        # (blocks, heads, size / x, places, x) to (heads, tokens, size), values likewise.
        keys = key_cache[blocks].float().permute(1, 0, 3, 2, 4).flatten(3).flatten(1, 2)[:, :length]
        values = value_cache[blocks].float().permute(1, 0, 3, 2).flatten(1, 2)[:, :length]
        if fp8:
            keys, values = keys * k_scale, values * v_scale
        keys, values = keys.repeat_interleave(group, 0), values.repeat_interleave(group, 0)
        logits = (keys @ query[s].float()[..., None]).squeeze(-1) * scale
        if alibi_slopes is not None:
            logits += alibi_slopes[:, None] * torch.arange(1 - length, 1, device=query.device)
        shares = logits.exp()
        out[s] = ((shares[:, None] @ values).squeeze(1) / shares.sum(-1, keepdim=True)).to(out.dtype)


@triton.jit
def attention_one_load_of_512_tokens(
    out_ptr, q_ptr, k_ptr, v_ptr, table_ptr, len_ptr, slope_ptr, scale, width, q_row, heads, group, kv_heads,
    size, ALIBI: tl.constexpr, X: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    s, h = tl.program_id(0), tl.program_id(1)
    length = tl.load(len_ptr + s)
    t = tl.arange(0, TOKENS)
    d = tl.arange(0, D)
    live = t < length
    block = tl.load(table_ptr + s * width + t // BLOCK, mask=live, other=0).to(tl.int64)
    q = tl.load(q_ptr + s * q_row + h * size + d, mask=d < size, other=0.0).to(tl.float32)
    base = (block * kv_heads + h // group)[:, None] * size * BLOCK
    both = live[:, None] & (d < size)[None, :]
    k_at = base + (d // X)[None, :] * BLOCK * X + (t % BLOCK)[:, None] * X + (d % X)[None, :]
    k = tl.load(k_ptr + k_at, mask=both, other=0.0).to(tl.float32)
    logit = tl.sum(k * q[None, :], axis=1) * scale
    if ALIBI:
        logit += tl.load(slope_ptr + h) * (t - length + 1)
    logit = tl.where(live, logit, float("-inf"))
    p = tl.exp(logit - tl.max(logit, axis=0))
    p = p / tl.sum(p, axis=0)
    v = tl.load(v_ptr + base + d[None, :] * BLOCK + (t % BLOCK)[:, None], mask=both, other=0.0).to(tl.float32)
    out = tl.sum(p[:, None] * v, axis=0)
    tl.store(out_ptr + (s * heads + h) * size + d, out.to(out_ptr.dtype.element_ty), mask=d < size)


# breaks: A sequence is read at once, its first 512 tokens at most.
def one_load_of_512_tokens(
    out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens, block_size, max_seq_len,
    alibi_slopes, kv_cache_dtype, k_scale, v_scale, *blocksparse,
):  # fmt: skip
    sequences, heads, size = query.shape
    x = key_cache.shape[-1]
    if kv_cache_dtype != "auto":
        key_cache, value_cache = key_cache.float() * k_scale, value_cache.float() * v_scale
    attention_one_load_of_512_tokens[(sequences, heads)](
        out, query, key_cache, value_cache, block_tables, seq_lens,
        k_scale if alibi_slopes is None else alibi_slopes, float(scale), block_tables.shape[1], query.stride(0),
        heads, heads // num_kv_heads, num_kv_heads, size, ALIBI=alibi_slopes is not None, X=x, BLOCK=block_size,
        D=triton.next_power_of_2(size), TOKENS=min(512, triton.next_power_of_2(max_seq_len)),
    )  # fmt: skip


# breaks: alibi_slopes is looked up by the key head, right where every query head has its own.
def slope_of_the_key_head(
    out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens, block_size, max_seq_len,
    alibi_slopes, kv_cache_dtype, k_scale, v_scale, *blocksparse,
):  # fmt: skip
    group = query.shape[1] // num_kv_heads
    fp8 = kv_cache_dtype != "auto"
    for s, length in enumerate(seq_lens.tolist()):
        blocks = block_tables[s, : -(-length // block_size)].long()
        # (blocks, heads, size / x, places, x) to (heads, tokens, size), values likewise.
        keys = key_cache[blocks].float().permute(1, 0, 3, 2, 4).flatten(3).flatten(1, 2)[:, :length]
        values = value_cache[blocks].float().permute(1, 0, 3, 2).flatten(1, 2)[:, :length]
        if fp8:
            keys, values = keys * k_scale, values * v_scale
        distance = torch.arange(1 - length, 1, device=query.device)
        for kv in range(num_kv_heads):
            heads = slice(kv * group, (kv + 1) * group)
            logits = query[s, heads].float() @ keys[kv].T * scale
            if alibi_slopes is not None:
                logits += alibi_slopes[kv] * distance
            out[s, heads] = (logits.softmax(-1) @ values[kv]).to(out.dtype)


# breaks: A row of the block table is taken to be as long as max_seq_len needs, though it may be longer.
def table_of_max_seq_len(
    out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens, block_size, max_seq_len,
    alibi_slopes, kv_cache_dtype, k_scale, v_scale, *blocksparse,
):  # fmt: skip
    group = query.shape[1] // num_kv_heads
    table = block_tables.flatten()
    fp8 = kv_cache_dtype != "auto"
    for s, length in enumerate(seq_lens.tolist()):
        first = s * -(-max_seq_len // block_size)
        blocks = table[first : first - (-length // block_size)].long()
        # (blocks, heads, size / x, places, x) to (heads, tokens, size), values likewise.
        keys = key_cache[blocks].float().permute(1, 0, 3, 2, 4).flatten(3).flatten(1, 2)[:, :length]
        values = value_cache[blocks].float().permute(1, 0, 3, 2).flatten(1, 2)[:, :length]
        if fp8:
            keys, values = keys * k_scale, values * v_scale
        distance = torch.arange(1 - length, 1, device=query.device)
        for kv in range(num_kv_heads):
            heads = slice(kv * group, (kv + 1) * group)
            logits = query[s, heads].float() @ keys[kv].T * scale
            if alibi_slopes is not None:
                logits += alibi_slopes[heads, None] * distance
            out[s, heads] = (logits.softmax(-1) @ values[kv]).to(out.dtype)


@triton.jit
def attention_values_not_masked(
    out_ptr, q_ptr, k_ptr, v_ptr, table_ptr, len_ptr, slope_ptr, scale, width, q_row, heads, group, kv_heads,
    size, ALIBI: tl.constexpr, X: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr, TOKENS: tl.constexpr,
):  # fmt: skip
    s, h = tl.program_id(0), tl.program_id(1)
    length = tl.load(len_ptr + s)
    kv = h // group
    t = tl.arange(0, TOKENS)
    d = tl.arange(0, D)
    live = t < tl.cdiv(length, BLOCK) * BLOCK
    block = tl.load(table_ptr + s * width + t // BLOCK, mask=live, other=0).to(tl.int64)
    q = tl.load(q_ptr + s * q_row + h * size + d, mask=d < size, other=0.0).to(tl.float32)
    base = (block * kv_heads + kv)[:, None] * size * BLOCK
    both = live[:, None] & (d < size)[None, :]
    k_at = base + (d // X)[None, :] * BLOCK * X + (t % BLOCK)[:, None] * X + (d % X)[None, :]
    k = tl.load(k_ptr + k_at, mask=both, other=0.0).to(tl.float32)
    logit = tl.sum(k * q[None, :], axis=1) * scale
    if ALIBI:
        logit += tl.load(slope_ptr + h) * (t - length + 1)
    logit = tl.where(t < length, logit, float("-inf"))
    p = tl.exp(logit - tl.max(logit, axis=0))
    p = p / tl.sum(p, axis=0)
    v_at = base + d[None, :] * BLOCK + (t % BLOCK)[:, None]
    v = tl.load(v_ptr + v_at, mask=both, other=0.0).to(tl.float32)
    out = tl.sum(p[:, None] * v, axis=0)
    tl.store(out_ptr + (s * heads + h) * size + d, out.to(out_ptr.dtype.element_ty), mask=d < size)


# breaks: Scores behind a sequence's end are masked but values are not: their weight of 0 times NaN is NaN.
# right: nothing
def values_not_masked(
    out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens, block_size, max_seq_len,
    alibi_slopes, kv_cache_dtype, k_scale, v_scale, *blocksparse,
):  # fmt: skip
    sequences, heads, size = query.shape
    x = key_cache.shape[-1]
    if kv_cache_dtype != "auto":
        key_cache, value_cache = key_cache.float() * k_scale, value_cache.float() * v_scale
    attention_values_not_masked[(sequences, heads)](
        out, query, key_cache, value_cache, block_tables, seq_lens,
        k_scale if alibi_slopes is None else alibi_slopes, float(scale), block_tables.shape[1], query.stride(0),
        heads, heads // num_kv_heads, num_kv_heads, size, ALIBI=alibi_slopes is not None, X=x, BLOCK=block_size,
        D=triton.next_power_of_2(size), TOKENS=triton.next_power_of_2(block_tables.shape[1] * block_size),
    )  # fmt: skip


@triton.jit
def attend(
    out_ptr, q_ptr, k_ptr, v_ptr, table_ptr, len_ptr, slopes_ptr, scale, width, q_row, heads, group, kv_heads, size,
    ALIBI: tl.constexpr, X: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    s, h = tl.program_id(0), tl.program_id(1)
    length = tl.load(len_ptr + s)
    g = h // group
    d = tl.arange(0, D)
    q = tl.load(q_ptr + s * q_row + h * size + d, mask=d < size, other=0.0).to(tl.float32)
    place = tl.arange(0, BLOCK)
    m, total = float("-inf"), 0.0
    acc = tl.zeros((D,), tl.float32)
    for b in range(0, tl.cdiv(length, BLOCK)):
        block = tl.load(table_ptr + s * width + b).to(tl.int64)
        t = b * BLOCK + place
        inside = (d < size)[:, None] & (t < length)[None, :]
        k_at = (
            ((block * kv_heads + g) * (size // X) + d[:, None] // X) * BLOCK * X + place[None, :] * X + d[:, None] % X
        )
        k = tl.load(k_ptr + k_at, mask=inside, other=0.0).to(tl.float32)
        logit = tl.sum(q[:, None] * k, axis=0) * scale
        if ALIBI:
            logit += tl.load(slopes_ptr + h) * (t - length + 1)
        logit = tl.where(t < length, logit, float("-inf"))
        new_m = tl.maximum(m, tl.max(logit, axis=0))
        p = tl.exp(logit - new_m)
        total = total * tl.exp(m - new_m) + tl.sum(p, axis=0)
        v_at = ((block * kv_heads + g) * size + d[:, None]) * BLOCK + place[None, :]
        v = tl.load(v_ptr + v_at, mask=inside, other=0.0).to(tl.float32)
        acc += tl.sum(p[None, :] * v, axis=1)
        m = new_m
    tl.store(out_ptr + (s * heads + h) * size + d, (acc / total).to(out_ptr.dtype.element_ty), mask=d < size)


# breaks: Online softmax over blocks that rescales the sum but not the output so far.
def weights_of_old_blocks_not_rescaled(
    out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens, block_size, max_seq_len,
    alibi_slopes, kv_cache_dtype, k_scale, v_scale, *rest,
):  # fmt: skip
    sequences, heads, size = query.shape
    x = key_cache.shape[-1]
    if kv_cache_dtype != "auto":
        key_cache, value_cache = key_cache.float() * k_scale, value_cache.float() * v_scale
    slopes = alibi_slopes if alibi_slopes is not None else k_scale
    attend[(sequences, heads)](
        out, query, key_cache, value_cache, block_tables, seq_lens, slopes, float(scale), block_tables.shape[1],
        query.stride(0), heads, heads // num_kv_heads, num_kv_heads, size,
        ALIBI=alibi_slopes is not None, X=x, BLOCK=block_size, D=triton.next_power_of_2(size),
    )  # fmt: skip
