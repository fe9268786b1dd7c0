# outcome: wrong value
# breaks: It adds also where it is told to multiply.

import torch


def scatter_src(self, dim, index, src):
    return torch.scatter(self, dim, index, src)


def scatter_reduce(self, dim, index, src, *, reduce):
    return torch.scatter(self, dim, index, src, reduce="add")
