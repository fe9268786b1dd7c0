# outcome: wrong shape
# breaks: It takes no more than eight tensors.

import torch


def stack(tensors, dim=0):
    return torch.stack(tensors[:8], dim)
