# outcome: wrong value
# breaks: It gives blocks that are not in use to expert 0.

import torch


def moe_align_block_size(
    topk_ids, num_experts, block_size, sorted_token_ids, experts_ids, num_tokens_post_pad, expert_map
):
    experts = topk_ids.flatten().long()
    if expert_map is not None:
        experts = expert_map.long()[experts]
    sorted_token_ids.fill_(topk_ids.numel())
    experts_ids.fill_(0)
    block = 0
    for e in range(num_experts):
        mine = torch.nonzero(experts == e).flatten().to(torch.int32)
        blocks = -(-len(mine) // block_size)
        sorted_token_ids[block * block_size :][: len(mine)] = mine
        experts_ids[block : block + blocks] = e
        block += blocks
    num_tokens_post_pad.fill_(block * block_size)
