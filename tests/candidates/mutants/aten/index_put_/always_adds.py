# outcome: wrong value
# breaks: It adds also where it is not told to.

import torch


def index_put_(self, indices, values, accumulate=False):
    return torch.ops.aten.index_put_(self, indices, values, accumulate=True)
