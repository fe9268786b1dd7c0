# outcome: wrong value
# breaks: It takes the softmax where the sigmoid is asked.

import torch


def grouped_topk(scores, n_group, topk_group, topk, renormalize, routed_scaling_factor, bias, scoring_func):
    s = torch.softmax(scores.float(), dim=-1) if scoring_func else scores.float()
    c = s + bias.float()
    group = c.reshape(len(c), n_group, -1).topk(2, dim=-1).values.sum(-1)
    kept = group.topk(topk_group, dim=-1).indices
    mask = torch.zeros(group.shape, dtype=torch.bool, device=c.device).scatter_(1, kept, True)
    c = c.masked_fill(~mask.repeat_interleave(c.shape[1] // n_group, 1), float("-inf"))
    ids = c.topk(topk, dim=-1).indices
    weights = s.gather(1, ids)
    if renormalize:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return weights * routed_scaling_factor, ids.to(torch.int32)
