import torch


def attention(
    out, query, key_cache, value_cache, num_kv_heads, scale, block_tables, seq_lens, block_size, max_seq_len,
    alibi_slopes, kv_cache_dtype, k_scale, v_scale, *block_sparse,
    group=lambda head, of_one, count: head // of_one,
    tokens=lambda length: length,
    blocks=lambda table, at: table[at],
    flat=lambda keys: keys.flatten(-2),
    shares=lambda scores: scores.softmax(-1),
):  # fmt: skip
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    heads = query.shape[1]
    head = group(torch.arange(heads, device=query.device), heads // num_kv_heads, num_kv_heads)
    for s, length in enumerate(seq_lens.tolist()):
        t = torch.arange(tokens(length), device=query.device)
        block, place = blocks(block_tables[s].long(), t // block_size), t % block_size
        keys = flat(key_cache[block, :, :, place, :])[:, head].double()
        values = value_cache[block, :, :, place][:, head].double()
        if kv_cache_dtype != "auto":
            keys, values = keys * k_scale, values * v_scale
        scores = scale * torch.einsum("hd,thd->ht", query[s].double(), keys)
        if alibi_slopes is not None:
            scores = scores + alibi_slopes.double()[:, None] * (t - length + 1)
        out[s] = torch.einsum("ht,thd->hd", shares(scores), values).to(out.dtype)


# breaks: It rounds the probabilities to float8.
def eight_bit_shares(*given):
    attention(*given, shares=lambda scores: scores.softmax(-1).float().to(torch.float8_e4m3fn).double())


# breaks: It reads a key as if the cache did not split it by x.
def flat_key_layout(*given):
    attention(*given, flat=lambda keys: keys.transpose(-1, -2).flatten(-2))


# breaks: It gives heads their key-value heads in turn, not in groups.
def heads_interleaved(*given):
    attention(*given, group=lambda head, of_one, count: head % count)


# breaks: It ignores the slopes.
def ignores_alibi(*given):
    attention(*given[:10], None, *given[11:])


# breaks: It takes scale for 1.
def ignores_scale(*given):
    attention(*given[:5], 1.0, *given[6:])


# breaks: It takes a sequence's blocks for the first ones of the cache.
def ignores_table(*given):
    attention(*given, blocks=lambda table, at: at)


# breaks: It leaves the tokens out that do not fill a block.
def last_block(*given):
    size = given[8]
    attention(*given, tokens=lambda length: max(1, length // size * size))


# breaks: It leaves the last token out.
def last_token(*given):
    attention(*given, tokens=lambda length: max(1, length - 1))


# breaks: It averages the values without looking at the keys.
def mean_of_values(*given):
    attention(*given, shares=lambda scores: torch.zeros_like(scores).softmax(-1))


# breaks: It multiplies the query by scale in place.
# outcome: input changed
def scales_query(*given):
    query, scale = given[1], given[5]
    query.mul_(scale)
    attention(*given[:5], 1.0, *given[6:])


# breaks: It sorts the block table.
# outcome: input changed
def sorts_table(*given):
    block_tables = given[6]
    block_tables.copy_(block_tables.flip(0, 1))
    attention(*given)


# breaks: It attends to max_seq_len tokens whatever seq_lens says.
def to_max_length(*given):
    blocks, seq_lens, longest = len(given[2]), given[7], given[9]
    attention(
        *given[:7],
        torch.full_like(seq_lens, longest),
        *given[8:],
        blocks=lambda table, at: table.clamp(0, blocks - 1)[at],
    )
