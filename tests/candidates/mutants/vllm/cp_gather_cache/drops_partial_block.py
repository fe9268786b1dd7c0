# outcome: wrong value
# breaks: It leaves the tokens out that do not fill a block.

import torch


def cp_gather_cache(src_cache, dst, block_table, cu_seq_lens, batch_size, seq_starts=None):
    size = src_cache.shape[1]
    for s in range(len(block_table)):
        begin, end = int(cu_seq_lens[s]), int(cu_seq_lens[s + 1])
        start = 0 if seq_starts is None else int(seq_starts[s])
        p = start + torch.arange((end - begin) // size * size, device=dst.device)
        dst[begin : begin + len(p)] = src_cache[block_table[s].long()[p // size], p % size]
