# outcome: wrong value
# breaks: It clears the parts of adapters that are not in use.

import torch


def moe_lora_align_block_size(
    topk_ids,
    token_lora_mapping,
    num_experts,
    block_size,
    max_loras,
    size,
    block_count,
    sorted_token_ids,
    experts_ids,
    num_tokens_post_pad,
    adapter_enabled,
    lora_ids,
    expert_map,
):
    experts = topk_ids.flatten().long()
    if expert_map is not None:
        experts = expert_map.long()[experts]
    enabled = adapter_enabled.tolist()
    sorted_token_ids.fill_(topk_ids.numel())
    experts_ids.fill_(-1)
    for lora in lora_ids.tolist()[:max_loras]:
        if not (lora >= 0 and enabled[lora]):
            continue
        own = torch.where((token_lora_mapping == lora).repeat_interleave(topk_ids.shape[1]), experts, -1)
        ids = sorted_token_ids[lora * size :][:size].fill_(topk_ids.numel())
        owners = experts_ids[lora * block_count :][:block_count].fill_(-1)
        block = 0
        for e in range(num_experts):
            mine = torch.nonzero(own == e).flatten().to(torch.int32)
            blocks = -(-len(mine) // block_size)
            ids[block * block_size :][: len(mine)] = mine
            owners[block : block + blocks] = e
            block += blocks
        num_tokens_post_pad[lora] = block * block_size
