import torch


# breaks: It gives an expert without rows a block.
def block_for_empty_experts(
    max_tokens_per_batch, block_size, expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad
):
    experts = len(expert_num_tokens)
    sorted_ids.fill_(experts * max_tokens_per_batch)
    expert_ids.fill_(-1)
    block = 0
    for e, count in enumerate(expert_num_tokens.tolist()):
        blocks, i = (
            max(1, -(-int(count) // block_size)),
            torch.arange(count, device=sorted_ids.device, dtype=torch.int32),
        )
        sorted_ids[block * block_size :][:count] = e * max_tokens_per_batch + i
        expert_ids[block : block + blocks] = e
        block += blocks
    num_tokens_post_pad.fill_(block * block_size)


# breaks: It counts the rows without their padding.
def counts_rows(max_tokens_per_batch, block_size, expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad):
    experts = len(expert_num_tokens)
    sorted_ids.fill_(experts * max_tokens_per_batch)
    expert_ids.fill_(-1)
    block = 0
    for e, count in enumerate(expert_num_tokens.tolist()):
        blocks, i = -(-int(count) // block_size), torch.arange(count, device=sorted_ids.device, dtype=torch.int32)
        sorted_ids[block * block_size :][:count] = e * max_tokens_per_batch + i
        expert_ids[block : block + blocks] = e
        block += blocks
    num_tokens_post_pad.fill_(int(expert_num_tokens.sum()))


# breaks: It numbers rows without gaps between the experts.
def numbers_rows_densely(
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


# breaks: It pads with the number of rows in use.
def pads_with_rows(max_tokens_per_batch, block_size, expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad):
    sorted_ids.fill_(int(expert_num_tokens.sum()))
    expert_ids.fill_(-1)
    block = 0
    for e, count in enumerate(expert_num_tokens.tolist()):
        blocks, i = -(-int(count) // block_size), torch.arange(count, device=sorted_ids.device, dtype=torch.int32)
        sorted_ids[block * block_size :][:count] = e * max_tokens_per_batch + i
        expert_ids[block : block + blocks] = e
        block += blocks
    num_tokens_post_pad.fill_(block * block_size)


# breaks: It gives blocks that are not in use to expert 0.
def tail_is_zero(max_tokens_per_batch, block_size, expert_num_tokens, sorted_ids, expert_ids, num_tokens_post_pad):
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
