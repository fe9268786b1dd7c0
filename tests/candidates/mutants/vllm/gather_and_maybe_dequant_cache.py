import torch


# breaks: It divides by the scale.
def divides_by_scale(
    src_cache, dst, block_table, cu_seq_lens, token_to_seq, num_tokens, kv_cache_dtype, scale, seq_starts=None
):
    s = token_to_seq[:num_tokens].long()
    size = src_cache.shape[1]
    p = torch.arange(num_tokens, device=dst.device) - cu_seq_lens.long()[s]
    if seq_starts is not None:
        p = p + seq_starts.long()[s]
    rows = src_cache.view(torch.uint8)[block_table.long()[s, p // size], p % size].view(src_cache.dtype)
    dst[:num_tokens] = rows if kv_cache_dtype == "auto" else (rows.float() / scale).to(dst.dtype)


# breaks: It takes every token for the first sequence's.
def first_sequence(
    src_cache, dst, block_table, cu_seq_lens, token_to_seq, num_tokens, kv_cache_dtype, scale, seq_starts=None
):
    s = torch.zeros(num_tokens, dtype=torch.long, device=dst.device)
    size = src_cache.shape[1]
    p = torch.arange(num_tokens, device=dst.device) - cu_seq_lens.long()[s]
    if seq_starts is not None:
        p = p + seq_starts.long()[s]
    rows = src_cache.view(torch.uint8)[block_table.long()[s, p // size % block_table.shape[1]], p % size].view(
        src_cache.dtype
    )
    dst[:num_tokens] = rows if kv_cache_dtype == "auto" else (rows.float() * scale).to(dst.dtype)


# breaks: It gathers every sequence from its beginning.
def ignores_starts(
    src_cache, dst, block_table, cu_seq_lens, token_to_seq, num_tokens, kv_cache_dtype, scale, seq_starts=None
):
    s = token_to_seq[:num_tokens].long()
    size = src_cache.shape[1]
    p = torch.arange(num_tokens, device=dst.device) - cu_seq_lens.long()[s]
    if seq_starts is not None:
        p = p
    rows = src_cache.view(torch.uint8)[block_table.long()[s, p // size], p % size].view(src_cache.dtype)
    dst[:num_tokens] = rows if kv_cache_dtype == "auto" else (rows.float() * scale).to(dst.dtype)


# breaks: It takes a sequence to lie in blocks that follow each other.
def ignores_table(
    src_cache, dst, block_table, cu_seq_lens, token_to_seq, num_tokens, kv_cache_dtype, scale, seq_starts=None
):
    s = token_to_seq[:num_tokens].long()
    size = src_cache.shape[1]
    p = torch.arange(num_tokens, device=dst.device) - cu_seq_lens.long()[s]
    if seq_starts is not None:
        p = p + seq_starts.long()[s]
    block = (block_table.long()[s, 0] + p // size) % src_cache.shape[0]
    rows = src_cache.view(torch.uint8)[block, p % size].view(src_cache.dtype)
    dst[:num_tokens] = rows if kv_cache_dtype == "auto" else (rows.float() * scale).to(dst.dtype)


# breaks: It rounds the scale to bfloat16.
def sixteen_bit_scale(
    src_cache, dst, block_table, cu_seq_lens, token_to_seq, num_tokens, kv_cache_dtype, scale, seq_starts=None
):
    s = token_to_seq[:num_tokens].long()
    size = src_cache.shape[1]
    p = torch.arange(num_tokens, device=dst.device) - cu_seq_lens.long()[s]
    if seq_starts is not None:
        p = p + seq_starts.long()[s]
    rows = src_cache.view(torch.uint8)[block_table.long()[s, p // size], p % size].view(src_cache.dtype)
    dst[:num_tokens] = rows if kv_cache_dtype == "auto" else (rows.float() * scale.bfloat16().float()).to(dst.dtype)


# breaks: It counts seq_starts in blocks.
def starts_in_blocks(
    src_cache, dst, block_table, cu_seq_lens, token_to_seq, num_tokens, kv_cache_dtype, scale, seq_starts=None
):
    s = token_to_seq[:num_tokens].long()
    size = src_cache.shape[1]
    p = torch.arange(num_tokens, device=dst.device) - cu_seq_lens.long()[s]
    if seq_starts is not None:
        p = p + seq_starts.long()[s] * size % (block_table.shape[1] * size)
    rows = src_cache.view(torch.uint8)[block_table.long()[s, p // size], p % size].view(src_cache.dtype)
    dst[:num_tokens] = rows if kv_cache_dtype == "auto" else (rows.float() * scale).to(dst.dtype)
