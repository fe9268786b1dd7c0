# outcome: wrong value
# breaks: It reads as index_select does, with the indices of the first row for every row.

import torch


def gather(self, dim, index, *, sparse_grad=False):
    if index.dim() == 0 or index.numel() == 0:
        return torch.gather(self, dim, index)
    flat = index.movedim(dim, 0).reshape(index.shape[dim], -1)
    same = flat[:, :1].expand_as(flat).reshape(index.movedim(dim, 0).shape).movedim(0, dim)
    return torch.gather(self, dim, same)
