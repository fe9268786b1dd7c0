import torch


# breaks: The softmax takes exp of the logits as they are, which overflows from 88 on.
def no_maximum_subtracted(
    out, exp_sums, max_logits, tmp_out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens,
    block_size, max_seq_len, alibi_slopes, kv_cache_dtype, k_scale, v_scale, *blocksparse,
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


# breaks: Logits are divided by the root of head_size, whatever scale is.
def scale_of_the_head_size(
    out, exp_sums, max_logits, tmp_out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens,
    block_size, max_seq_len, alibi_slopes, kv_cache_dtype, k_scale, v_scale, *blocksparse,
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
            logits = query[s, heads].float() @ keys[kv].T / query.shape[2] ** 0.5
            if alibi_slopes is not None:
                logits += alibi_slopes[heads, None] * distance
            out[s, heads] = (logits.softmax(-1) @ values[kv]).to(out.dtype)
