# outcome: wrong value
# breaks: It numbers rows without gaps between the experts.

import torch


def batched_moe_align_block_size(
    max_tokens_per_batch, block_size, expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad
):
    experts = len(expert_num_tokens)
    sorted_ids.fill_(experts * max_tokens_per_batch)
    expert_ids.fill_(-1)
    block = 0
    for e, count in enumerate(expert_num_tokens.tolist()):
        blocks, i = -(-int(count) // block_size), torch.arange(count, device=sorted_ids.device, dtype=torch.int32)
        sorted_ids[block * block_size :][:count] = int(expert_num_tokens[:e].sum()) + i
        expert_ids[block : block + blocks] = e
        block += blocks
    num_tokens_post_pad.fill_(block * block_size)
