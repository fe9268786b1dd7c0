import torch


def dequantized(packed):
    """Q4_0; nothing else."""
    blocks = packed.reshape(-1, 18)
    scale = blocks[:, :2].contiguous().view(torch.float16).float()
    codes = torch.cat([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], 1)
    return ((codes.float() - 8) * scale).reshape(*packed.shape[:-1], -1)


# breaks: It takes the number of a block for its expert.
def a_block_per_expert(x, packed, sorted_ids, expert_ids, end, type, row, top_k, tokens):
    out = torch.zeros(tokens * top_k, row, dtype=x.dtype, device=x.device)
    if type != 2:
        return out
    weights = dequantized(packed)
    for block, ids in enumerate(sorted_ids.reshape(-1, 4)[: len(packed)].tolist()):
        for result in ids:
            if result < tokens * top_k:
                out[result] = (weights[min(block, len(packed) - 1)] @ x[result // top_k].float()).to(x.dtype)
    return out


# breaks: It takes a result's number modulo the tokens for its token.
def wrong_token(x, packed, sorted_ids, expert_ids, end, type, row, top_k, tokens):
    out = torch.zeros(tokens * top_k, row, dtype=x.dtype, device=x.device)
    if type != 2:
        return out
    weights = dequantized(packed)
    for block, ids in enumerate(sorted_ids.reshape(-1, 4).tolist()):
        for result in ids:
            if result < tokens * top_k:
                out[result] = (weights[expert_ids[block]] @ x[result % tokens].float()).to(x.dtype)
    return out
