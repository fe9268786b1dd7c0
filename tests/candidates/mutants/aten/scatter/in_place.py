# outcome: input changed
# breaks: It writes into self and copies that.

import torch


def scatter_src(self, dim, index, src):
    return self.scatter_(dim, index, src).clone()


def scatter_reduce(self, dim, index, src, *, reduce):
    return torch.scatter(self, dim, index, src, reduce=reduce)
