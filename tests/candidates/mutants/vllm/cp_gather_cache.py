import torch


# breaks: It clears the rows of its destination that belong to no token.
# outcome: input changed
def clears_the_rest(src_cache, dst, block_table, cu_seq_lens, batch_size, seq_starts=None):
    size = src_cache.shape[1]
    dst.zero_()
    for s in range(len(block_table)):
        begin, end = int(cu_seq_lens[s]), int(cu_seq_lens[s + 1])
        start = 0 if seq_starts is None else int(seq_starts[s])
        p = start + torch.arange(end - begin, device=dst.device)
        dst[begin : begin + len(p)] = src_cache[block_table[s].long()[p // size], p % size]


# breaks: It leaves the tokens out that do not fill a block.
def drops_partial_block(src_cache, dst, block_table, cu_seq_lens, batch_size, seq_starts=None):
    size = src_cache.shape[1]
    for s in range(len(block_table)):
        begin, end = int(cu_seq_lens[s]), int(cu_seq_lens[s + 1])
        start = 0 if seq_starts is None else int(seq_starts[s])
        p = start + torch.arange((end - begin) // size * size, device=dst.device)
        dst[begin : begin + len(p)] = src_cache[block_table[s].long()[p // size], p % size]


# breaks: It gathers every sequence from its beginning.
def ignores_starts(src_cache, dst, block_table, cu_seq_lens, batch_size, seq_starts=None):
    size = src_cache.shape[1]
    for s in range(len(block_table)):
        begin, end = int(cu_seq_lens[s]), int(cu_seq_lens[s + 1])
        start = 0
        p = start + torch.arange(end - begin, device=dst.device)
        dst[begin : begin + len(p)] = src_cache[block_table[s].long()[p // size], p % size]


# breaks: It takes a sequence to lie in blocks that follow each other.
def ignores_table(src_cache, dst, block_table, cu_seq_lens, batch_size, seq_starts=None):
    size = src_cache.shape[1]
    for s in range(len(block_table)):
        begin, end = int(cu_seq_lens[s]), int(cu_seq_lens[s + 1])
        start = 0 if seq_starts is None else int(seq_starts[s])
        p = start + torch.arange(end - begin, device=dst.device)
        dst[begin : begin + len(p)] = src_cache[block_table[s, 0] + p // size - start // size, p % size]


# breaks: It begins with the block in which a sequence starts, not with the token.
def whole_block_starts(src_cache, dst, block_table, cu_seq_lens, batch_size, seq_starts=None):
    size = src_cache.shape[1]
    for s in range(len(block_table)):
        begin, end = int(cu_seq_lens[s]), int(cu_seq_lens[s + 1])
        start = 0 if seq_starts is None else int(seq_starts[s]) // size * size
        p = start + torch.arange(end - begin, device=dst.device)
        dst[begin : begin + len(p)] = src_cache[block_table[s].long()[p // size], p % size]
