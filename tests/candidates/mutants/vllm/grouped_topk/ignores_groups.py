# outcome: wrong value
# breaks: It chooses from all groups.

import torch


def grouped_topk(scores, n_group, topk_group, topk, renormalize, routed_scaling_factor, bias, scoring_func):
    s = torch.sigmoid(scores.float()) if scoring_func else scores.float()
    c = s + bias.float()
    group = c.reshape(len(c), n_group, -1).topk(2, dim=-1).values.sum(-1)
    kept = torch.arange(n_group, device=c.device).expand(group.shape)
    mask = torch.zeros(group.shape, dtype=torch.bool, device=c.device).scatter_(1, kept, True)
    c = c.masked_fill(~mask.repeat_interleave(c.shape[1] // n_group, 1), float("-inf"))
    ids = c.topk(topk, dim=-1).indices
    weights = s.gather(1, ids)
    if renormalize:
        weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
    return weights * routed_scaling_factor, ids.to(torch.int32)
