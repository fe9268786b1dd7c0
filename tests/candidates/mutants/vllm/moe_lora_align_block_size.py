import torch


def align(
    topk_ids, token_lora_mapping, num_experts, block_size, max_loras, size, block_count, sorted_token_ids,
    experts_ids, num_tokens_post_pad, adapter_enabled, lora_ids, expert_map,
    *, served=lambda mapping, lora: mapping == lora, place=lambda order, lora: lora, padding=lambda own: own.numel(),
):  # fmt: skip
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    experts = topk_ids.flatten().long()
    if expert_map is not None:
        experts = expert_map.long()[experts]
    enabled = adapter_enabled.tolist()
    for order, lora in enumerate(lora_ids.tolist()[:max_loras]):
        if not (lora >= 0 and enabled[lora]):
            continue
        at = place(order, lora)
        own = torch.where(served(token_lora_mapping, lora).repeat_interleave(topk_ids.shape[1]), experts, -1)
        ids = sorted_token_ids[at * size :][:size].fill_(padding(own))
        owners = experts_ids[at * block_count :][:block_count].fill_(-1)
        block = 0
        for e in range(num_experts):
            mine = torch.nonzero(own == e).flatten().to(torch.int32)
            blocks = -(-len(mine) // block_size)
            ids[block * block_size :][: len(mine)] = mine
            owners[block : block + blocks] = e
            block += blocks
        num_tokens_post_pad[at] = block * block_size


# breaks: It clears the parts of adapters that are not in use.
def clears_others(*given):
    topk_ids, sorted_token_ids, experts_ids = given[0], given[7], given[8]
    sorted_token_ids.fill_(topk_ids.numel())
    experts_ids.fill_(-1)
    align(*given)


# breaks: It gives every adapter all tokens.
def ignores_adapters(*given):
    align(*given, served=lambda mapping, lora: mapping > -2)


# breaks: It puts adapters where they stand in lora_ids.
def order_for_number(*given):
    align(*given, place=lambda order, lora: order)


# breaks: It pads with the number of the adapter's pairs.
def pads_with_tokens(*given):
    align(*given, padding=lambda own: int((own >= 0).sum()))


# breaks: It serves adapters that are switched off.
def serves_disabled(*given):
    adapter_enabled = given[10]
    align(*given[:10], torch.ones_like(adapter_enabled), *given[11:])
