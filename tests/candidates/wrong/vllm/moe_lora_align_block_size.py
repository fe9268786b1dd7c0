import torch


# breaks: There are 256 counters for each adapter, and pairs of further experts are lost.
def experts_up_to_256(
    topk_ids, token_lora_mapping, num_experts, block_size, max_loras, max_num_tokens_padded, max_num_m_blocks,
    sorted_token_ids, experts_ids, num_tokens_post_pad, adapter_enabled, lora_ids, maybe_expert_map,
):  # fmt: skip
    ids = topk_ids.long() if maybe_expert_map is None else maybe_expert_map.long()[topk_ids.long()]
    for lora in lora_ids.tolist():
        if lora < 0 or not adapter_enabled[lora]:
            continue
        flat = torch.where((token_lora_mapping == lora)[:, None], ids, -1).flatten()
        kept = (flat >= 0) & (flat < 256)
        counts = torch.bincount(flat[kept], minlength=256)
        blocks = -(-counts // block_size)
        ends = blocks.cumsum(0)
        used = int(ends[-1])
        order = torch.argsort(torch.where(kept, flat, 256), stable=True)[: int(kept.sum())]
        expert = flat[order]
        place = torch.arange(len(order), device=ids.device) - (counts.cumsum(0) - counts)[expert]
        rows = sorted_token_ids.view(max_loras, -1)[lora]
        rows.fill_(flat.numel())
        rows[(ends - blocks)[expert] * block_size + place] = order.int()
        experts = experts_ids.view(max_loras, -1)[lora]
        experts.fill_(-1)
        experts[:used] = torch.repeat_interleave(torch.arange(256, device=ids.device), blocks).int()
        num_tokens_post_pad[lora] = used * block_size
