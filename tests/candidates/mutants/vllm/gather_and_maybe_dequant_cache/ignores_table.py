# outcome: wrong value
# breaks: It takes a sequence to lie in blocks that follow each other.

import torch


def gather_and_maybe_dequant_cache(
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
