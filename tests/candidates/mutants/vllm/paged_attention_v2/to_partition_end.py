# outcome: wrong value
# breaks: It attends to the end of the last partition.

import torch


def paged_attention_v2(
    out,
    exp_sums,
    max_logits,
    tmp_out,
    query,
    key_cache,
    value_cache,
    num_kv_heads,
    scale,
    block_tables,
    seq_lens,
    block_size,
    max_seq_len,
    alibi_slopes,
    kv_cache_dtype,
    k_scale,
    v_scale,
    *block_sparse,
):
    heads = query.shape[1]
    group = torch.arange(heads, device=query.device) // (heads // num_kv_heads)
    key_cache, value_cache = key_cache.float(), value_cache.float()
    for s, length in enumerate(seq_lens.tolist()):
        parts, maxima, sums = [], [], []
        for part in range(-(-length // 512)):
            t = torch.arange(part * 512, part * 512 + 512, device=query.device)
            block, place = (
                block_tables[s].long()[(t // block_size).clamp(max=block_tables.shape[1] - 1)],
                t % block_size,
            )
            keys = key_cache[block, :, :, place, :].flatten(-2)[:, group]
            values = value_cache[block, :, :, place][:, group]
            if kv_cache_dtype != "auto":
                keys, values = keys * k_scale, values * v_scale
            scores = scale * torch.einsum("hd,thd->ht", query[s].float(), keys)
            if alibi_slopes is not None:
                scores = scores + alibi_slopes[:, None] * (t - length + 1)
            maxima.append(scores.amax(-1, keepdim=True))
            weights = torch.exp(scores - maxima[-1])
            sums.append(weights.sum(-1, keepdim=True))
            parts.append(torch.einsum("ht,thd->hd", weights, values))
        maxima, sums, parts = torch.stack(maxima), torch.stack(sums), torch.stack(parts)
        factors = torch.exp(maxima - maxima.amax(0))
        out[s] = ((factors * parts).sum(0) / (factors * sums).sum(0)).to(out.dtype)
