# outcome: wrong value
# breaks: Of source elements that name the same place, one alone counts.

import torch


def scatter_src(self, dim, index, src):
    return torch.scatter(self, dim, index, src)


def scatter_reduce(self, dim, index, src, *, reduce):
    if not index.numel():
        return self.clone()
    part = src[tuple(slice(size) for size in index.shape)]
    old = torch.gather(self, dim, index)
    return torch.scatter(self, dim, index, old + part if reduce == "add" else old * part)
