import torch


def align(
    topk_ids, num_experts, block_size, sorted_token_ids, experts_ids, num_tokens_post_pad, expert_map,
    *, order=range, least=0, stored=lambda mine: mine, padding=None, tail=-1,
):  # fmt: skip
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    experts = mapped(topk_ids, expert_map)
    sorted_token_ids.fill_(topk_ids.numel() if padding is None else padding)
    experts_ids.fill_(tail)
    block = 0
    for e in order(num_experts):
        mine = torch.nonzero(experts == e).flatten().to(torch.int32)
        blocks = max(least, -(-len(mine) // block_size))
        sorted_token_ids[block * block_size :][: len(mine)] = stored(mine)
        experts_ids[block : block + blocks] = e
        block += blocks
    num_tokens_post_pad.fill_(block * block_size)


def mapped(topk_ids, expert_map):
    experts = topk_ids.flatten().long()
    return experts if expert_map is None else expert_map.long()[experts]


# breaks: It gives an expert without pairs a block.
def block_for_empty_experts(*given):
    align(*given, least=1)


# breaks: It counts the pairs without their padding.
def counts_pairs(topk_ids, *rest):
    align(topk_ids, *rest)
    num_tokens_post_pad, expert_map = rest[-2:]
    num_tokens_post_pad.fill_((mapped(topk_ids, expert_map) >= 0).sum())


# breaks: It begins with the last expert.
def descending_experts(*given):
    align(*given, order=lambda count: reversed(range(count)))


# breaks: It leaves out the pairs that do not fill a block.
def drops_partial_block(topk_ids, num_experts, block_size, *rest):
    def stored(mine):
        whole = torch.arange(len(mine), device=mine.device) < len(mine) // block_size * block_size
        return torch.where(whole, mine, topk_ids.numel())

    align(topk_ids, num_experts, block_size, *rest, stored=stored)


# breaks: It ignores the expert map.
def ignores_map(*given):
    align(*given[:-1], None)


# breaks: It pads with pair 0.
def pads_with_zero(*given):
    align(*given, padding=0)


# breaks: It lists an expert's first pair in place of its last.
def repeats_a_pair(*given):
    align(*given, stored=lambda mine: torch.cat((mine[:-1], mine[:1])))


# breaks: It gives blocks that are not in use to expert 0.
def tail_is_zero(*given):
    align(*given, tail=0)


# breaks: It lists tokens, not pairs.
def tokens_for_pairs(*given):
    align(*given, stored=lambda mine: mine // given[0].shape[1])
