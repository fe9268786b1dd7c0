# outcome: wrong value
# breaks: It takes scale for 1.

import torch


def paged_attention_v1(
    out,
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
    for s, length in enumerate(seq_lens.tolist()):
        t = torch.arange(length, device=query.device)
        block, place = block_tables[s].long()[t // block_size], t % block_size
        keys = key_cache[block, :, :, place, :].flatten(-2)[:, group].double()
        values = value_cache[block, :, :, place][:, group].double()
        scores = torch.einsum("hd,thd->ht", query[s].double(), keys)
        if alibi_slopes is not None:
            scores = scores + alibi_slopes.double()[:, None] * (t - length + 1)
        out[s] = torch.einsum("ht,thd->hd", scores.softmax(-1), values).to(out.dtype)
