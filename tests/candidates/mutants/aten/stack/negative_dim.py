# outcome: wrong shape
# breaks: It counts a negative dim from the end of the inputs' dimensions.

import torch


def stack(tensors, dim=0):
    n = tensors[0].dim()
    return torch.stack(tensors, max(dim + n, 0) if dim < 0 else dim)
