# outcome: wrong value
# breaks: A product that is too large for dst's dtype becomes its largest number in place of infinity.

import torch


def gather_and_maybe_dequant_cache(
    src_cache, dst, block_table, cu_seq_lens, token_to_seq, num_tokens, kv_cache_dtype, scale, seq_starts=None
):
    s = token_to_seq[:num_tokens].long()
    p = torch.arange(num_tokens, device=dst.device) - cu_seq_lens[s]
    if seq_starts is not None:
        p += seq_starts[s]
    places = src_cache.shape[1]
    rows = src_cache[block_table[s, p // places].long(), p % places]
    if kv_cache_dtype != "auto":
        top = torch.finfo(dst.dtype).max
        rows = (rows.float() * scale).clamp(-top, top)
    dst[:num_tokens] = rows.to(dst.dtype)
