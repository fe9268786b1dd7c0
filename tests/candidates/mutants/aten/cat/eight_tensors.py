# outcome: wrong shape
# breaks: It takes no more than eight tensors.

import torch


def cat(tensors, dim=0):
    return torch.cat(tensors[:8], dim)
