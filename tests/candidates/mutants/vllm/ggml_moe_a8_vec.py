import torch


def dequantized(packed):
    """Q4_0; nothing else."""
    blocks = packed.reshape(-1, 18)
    scale = blocks[:, :2].contiguous().view(torch.float16).float()
    codes = torch.cat([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], 1)
    return ((codes.float() - 8) * scale).reshape(*packed.shape[:-1], -1)


# breaks: It reads the choices column by column.
def choices_transposed(x, packed, topk_ids, top_k, type, row, tokens):
    out = torch.zeros(tokens * top_k, row, dtype=x.dtype, device=x.device)
    if type != 2:
        return out
    weights = dequantized(packed)
    for result, expert in enumerate(topk_ids.T.flatten().tolist()):
        out[result] = (weights[expert] @ x[result // top_k].float()).to(x.dtype)
    return out


# breaks: It takes the second size of topk_ids for top_k.
def tokens_by_shape(x, packed, topk_ids, top_k, type, row, tokens):
    out = torch.zeros(tokens * top_k, row, dtype=x.dtype, device=x.device)
    if type != 2:
        return out
    weights = dequantized(packed)
    for result, expert in enumerate(topk_ids.flatten().tolist()):
        out[result] = (weights[expert] @ x[min(result // topk_ids.shape[1], tokens - 1)].float()).to(x.dtype)
    return out
