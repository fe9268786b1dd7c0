# outcome: wrong value
# breaks: It reads src in the order of the index, as if src were not larger.

import torch


def _part(src, index):
    return src.reshape(-1)[: index.numel()].reshape(index.shape)


def scatter_src(self, dim, index, src):
    return torch.scatter(self, dim, index, _part(src, index))


def scatter_reduce(self, dim, index, src, *, reduce):
    return torch.scatter(self, dim, index, _part(src, index), reduce=reduce)
