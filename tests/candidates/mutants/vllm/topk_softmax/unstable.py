# outcome: wrong value
# breaks: It does not subtract the largest before exp.

import torch


def topk_softmax(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, topk = topk_indices.shape
    p = torch.exp(gating_output.float()) / torch.exp(gating_output.float()).sum(-1, keepdim=True)
    choice = p if bias is None else p + bias
    ids = choice.topk(topk, dim=-1).indices
    weights = p.gather(1, ids)
    column = torch.arange(topk, device=ids.device)
    topk_weights.copy_(weights / weights.sum(-1, keepdim=True) if renormalize else weights)
    topk_indices.copy_(ids)
    token_expert_indices.copy_(column * tokens + torch.arange(tokens, device=ids.device)[:, None])
