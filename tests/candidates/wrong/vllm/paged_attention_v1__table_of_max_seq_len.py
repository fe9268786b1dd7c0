# outcome: wrong value
# breaks: A row of the block table is taken to be as long as max_seq_len needs, though it may be longer.

import torch


def paged_attention_v1(
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
