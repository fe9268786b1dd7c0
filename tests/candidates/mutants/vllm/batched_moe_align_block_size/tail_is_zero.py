# outcome: wrong value
# breaks: It gives blocks that are not in use to expert 0.

import torch


def batched_moe_align_block_size(
    max_tokens_per_batch, block_size, expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad
):
    experts = len(expert_num_tokens)
    sorted_ids.fill_(experts * max_tokens_per_batch)
    expert_ids.fill_(0)
    block = 0
    for e, count in enumerate(expert_num_tokens.tolist()):
        blocks, i = -(-int(count) // block_size), torch.arange(count, device=sorted_ids.device, dtype=torch.int32)
        sorted_ids[block * block_size :][:count] = e * max_tokens_per_batch + i
        expert_ids[block : block + blocks] = e
        block += blocks
    num_tokens_post_pad.fill_(block * block_size)
