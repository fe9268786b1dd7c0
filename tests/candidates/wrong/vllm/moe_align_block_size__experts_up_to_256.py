# outcome: wrong value
# breaks: There are 256 counters, and pairs of further experts are lost.

import torch


def moe_align_block_size(
    topk_ids, num_experts, block_size, sorted_token_ids, experts_ids, num_tokens_post_pad, maybe_expert_map
):
    ids = topk_ids.flatten().long()
    pairs = ids.numel()
    if maybe_expert_map is not None:
        ids = maybe_expert_map.long()[ids]
    kept = (ids >= 0) & (ids < 256)
    counts = torch.bincount(ids[kept], minlength=256)
    blocks = -(-counts // block_size)
    ends = blocks.cumsum(0)
    used = int(ends[-1])
    order = torch.argsort(torch.where(kept, ids, 256), stable=True)[: int(kept.sum())]
    expert = ids[order]
    place = torch.arange(len(order), device=ids.device) - (counts.cumsum(0) - counts)[expert]
    sorted_token_ids.fill_(pairs)
    sorted_token_ids[(ends - blocks)[expert] * block_size + place] = order.int()
    experts_ids.fill_(-1)
    experts_ids[:used] = torch.repeat_interleave(torch.arange(256, device=ids.device), blocks).int()
    num_tokens_post_pad.fill_(used * block_size)
