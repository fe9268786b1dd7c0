# outcome: wrong value
# breaks: Eight experts are chosen at most, further places hold zeros.

import torch


def grouped_topk(scores, n_group, topk_group, topk, renormalize, routed_scaling_factor, bias, scoring_func):
    s = scores.float().sigmoid() if scoring_func == 1 else scores.float()
    c = (s + bias.float()).unflatten(1, (n_group, -1))
    kept = c.topk(2, -1).values.sum(-1).topk(topk_group, -1).indices
    mask = torch.zeros(c.shape[:2], dtype=torch.bool, device=c.device).scatter_(1, kept, True)
    chosen = c.masked_fill(~mask[..., None], -torch.inf).flatten(1).topk(min(topk, 8), -1).indices
    weights = torch.zeros((len(s), topk), device=s.device)
    ids = torch.zeros((len(s), topk), dtype=torch.int32, device=s.device)
    picked = s.gather(1, chosen)
    if renormalize:
        picked = picked / (picked.sum(-1, keepdim=True) + 1e-20)
    weights[:, :8] = picked * routed_scaling_factor
    ids[:, :8] = chosen.int()
    return weights, ids
