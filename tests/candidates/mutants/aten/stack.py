import torch


# breaks: It takes no more than eight tensors.
# outcome: wrong shape
def eight_tensors(tensors, dim=0):
    return torch.stack(tensors[:8], dim)


# breaks: It counts a negative dim from the end of the inputs' dimensions.
# outcome: wrong shape
def negative_dim(tensors, dim=0):
    n = tensors[0].dim()
    return torch.stack(tensors, max(dim + n, 0) if dim < 0 else dim)
