import torch


def attention(
    out, exp_sums, max_logits, tmp_out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens,
    block_size, max_seq_len, alibi_slopes, kv_cache_dtype, k_scale, v_scale, *block_sparse,
    partitions=lambda length: -(-length // 512),
    end=lambda length, part: min(length, part * 512 + 512),
    blocks=lambda table, at, count: table[at],
    scaled=lambda keys, values, k_scale, v_scale: (keys * k_scale, values * v_scale),
    factors=lambda maxima: torch.exp(maxima - maxima.amax(0)),
):  # fmt: skip
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    heads = query.shape[1]
    group = torch.arange(heads, device=query.device) // (heads // num_kv_heads)
    key_cache, value_cache = key_cache.float(), value_cache.float()
    for s, length in enumerate(seq_lens.tolist()):
        parts, maxima, sums = [], [], []
        for part in range(partitions(length)):
            t = torch.arange(part * 512, end(length, part), device=query.device)
            block, place = blocks(block_tables[s].long(), t // block_size, len(key_cache)), t % block_size
            keys = key_cache[block, :, :, place, :].flatten(-2)[:, group]
            values = value_cache[block, :, :, place][:, group]
            if kv_cache_dtype != "auto":
                keys, values = scaled(keys, values, k_scale, v_scale)
            scores = scale * torch.einsum("hd,thd->ht", query[s].float(), keys)
            if alibi_slopes is not None:
                scores = scores + alibi_slopes[:, None] * (t - length + 1)
            maxima.append(scores.amax(-1, keepdim=True))
            weights = torch.exp(scores - maxima[-1])
            sums.append(weights.sum(-1, keepdim=True))
            parts.append(torch.einsum("ht,thd->hd", weights, values))
        maxima, sums, parts = torch.stack(maxima), torch.stack(sums), torch.stack(parts)
        weight = factors(maxima)
        out[s] = ((weight * parts).sum(0) / (weight * sums).sum(0)).to(out.dtype)


# breaks: It answers with the first partition.
def first_partition_only(*given):
    attention(*given, partitions=lambda length: 1)


# breaks: It merges partitions as if they had one largest logit.
def forgets_maxima(*given):
    attention(*given, factors=torch.ones_like)


# breaks: It leaves out the partition that is not full.
def full_partitions_only(*given):
    attention(*given, partitions=lambda length: max(1, length // 512))


# breaks: It takes a sequence to lie in blocks that follow each other.
def ignores_table(*given):
    attention(*given, blocks=lambda table, at, count: (table[0] + at) % count)


# breaks: It takes the scale of keys for values' and the other way round.
def swaps_scales(*given):
    attention(*given, scaled=lambda keys, values, k_scale, v_scale: (keys * v_scale, values * k_scale))


# breaks: It attends to the end of the last partition.
def to_partition_end(*given):
    attention(
        *given,
        end=lambda length, part: part * 512 + 512,
        blocks=lambda table, at, count: table[at.clamp(max=len(table) - 1)],
    )
