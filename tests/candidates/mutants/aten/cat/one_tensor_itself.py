# outcome: rejected
# breaks: It returns the tensor itself where there is only one.

import torch


def cat(tensors, dim=0):
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors, dim)
