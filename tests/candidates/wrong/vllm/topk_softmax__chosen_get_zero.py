# outcome: wrong value
# breaks: What has been chosen gets the key 0, which is more than the others have where the bias is negative.

import torch


def topk_softmax(topk_weights, topk_indices, token_expert_indices, gating_output, renormalize, bias):
    tokens, topk = topk_weights.shape
    p = gating_output.float().softmax(-1)
    keys = p.clone() if bias is None else p + bias
    for choice in range(topk):
        best = keys.argmax(-1, keepdim=True)
        topk_weights[:, choice : choice + 1] = p.gather(1, best)
        topk_indices[:, choice : choice + 1] = best.to(topk_indices.dtype)
        keys.scatter_(1, best, 0.0)
    if renormalize:
        topk_weights /= topk_weights.sum(-1, keepdim=True)
    token_expert_indices.copy_(torch.arange(tokens * topk, device=p.device).view(topk, tokens).T)
