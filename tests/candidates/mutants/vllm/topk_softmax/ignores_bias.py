# outcome: wrong value
# breaks: It chooses without the bias.

import torch


def topk_softmax(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, topk = topk_indices.shape
    p = torch.softmax(gating_output.float(), dim=-1)
    choice = p
    ids = choice.topk(topk, dim=-1).indices
    weights = p.gather(1, ids)
    column = torch.arange(topk, device=ids.device)
    topk_weights.copy_(weights / weights.sum(-1, keepdim=True) if renormalize else weights)
    topk_indices.copy_(ids)
    token_expert_indices.copy_(column * tokens + torch.arange(tokens, device=ids.device)[:, None])
