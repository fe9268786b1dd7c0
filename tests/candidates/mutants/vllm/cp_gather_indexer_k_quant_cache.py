import torch


# breaks: It gives every token the scale of its block's first.
def first_scale(kv_cache, dst_k, dst_scale, block_table, cu_seq_lens):
    size, head, width = kv_cache.shape[1], dst_k.shape[1], dst_scale.shape[1]
    flat = kv_cache.flatten(1)
    d, q = (torch.arange(count, device=dst_k.device) for count in (head, width))
    for s in range(len(block_table)):
        begin, end = int(cu_seq_lens[s]), int(cu_seq_lens[s + 1])
        t = torch.arange(end - begin, device=dst_k.device)
        b, j = block_table[s].long()[t // size][:, None], (t % size)[:, None]
        dst_k[begin:end] = flat[b, j * head + d]
        dst_scale[begin:end] = flat[b, size * head + 0 * j + q]


# breaks: It takes a sequence to lie in blocks that follow each other.
def ignores_table(kv_cache, dst_k, dst_scale, block_table, cu_seq_lens):
    size, head, width = kv_cache.shape[1], dst_k.shape[1], dst_scale.shape[1]
    flat = kv_cache.flatten(1)
    d, q = (torch.arange(count, device=dst_k.device) for count in (head, width))
    for s in range(len(block_table)):
        begin, end = int(cu_seq_lens[s]), int(cu_seq_lens[s + 1])
        t = torch.arange(end - begin, device=dst_k.device)
        b, j = ((block_table[s, 0] + t // size) % len(kv_cache)).long()[:, None], (t % size)[:, None]
        dst_k[begin:end] = flat[b, j * head + d]
        dst_scale[begin:end] = flat[b, size * head + j * width + q]


# breaks: It takes the scales to stand in front of the codes.
def scales_first(kv_cache, dst_k, dst_scale, block_table, cu_seq_lens):
    size, head, width = kv_cache.shape[1], dst_k.shape[1], dst_scale.shape[1]
    flat = kv_cache.flatten(1)
    d, q = (torch.arange(count, device=dst_k.device) for count in (head, width))
    for s in range(len(block_table)):
        begin, end = int(cu_seq_lens[s]), int(cu_seq_lens[s + 1])
        t = torch.arange(end - begin, device=dst_k.device)
        b, j = block_table[s].long()[t // size][:, None], (t % size)[:, None]
        dst_k[begin:end] = flat[b, size * width + j * head + d]
        dst_scale[begin:end] = flat[b, j * width + q]


# breaks: It takes a token's scale to stand behind its codes.
def token_rows(kv_cache, dst_k, dst_scale, block_table, cu_seq_lens):
    size, head, width = kv_cache.shape[1], dst_k.shape[1], dst_scale.shape[1]
    flat = kv_cache.flatten(1)
    d, q = (torch.arange(count, device=dst_k.device) for count in (head, width))
    for s in range(len(block_table)):
        begin, end = int(cu_seq_lens[s]), int(cu_seq_lens[s + 1])
        t = torch.arange(end - begin, device=dst_k.device)
        b, j = block_table[s].long()[t // size][:, None], (t % size)[:, None]
        dst_k[begin:end] = flat[b, j * (head + width) + d]
        dst_scale[begin:end] = flat[b, j * (head + width) + head + q]
