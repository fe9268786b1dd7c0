# outcome: wrong dtype
# breaks: It answers in the first tensor's dtype.

import torch


def cat(tensors, dim=0):
    return torch.cat([each.to(tensors[0].dtype) for each in tensors], dim)
