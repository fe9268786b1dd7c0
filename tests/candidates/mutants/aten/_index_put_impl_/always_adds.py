# outcome: wrong value
# breaks: It adds also where it is not told to.

import torch


def _index_put_impl_(self, indices, values, accumulate=False, unsafe=False):
    return torch.ops.aten.index_put_(self, indices, values, accumulate=True)
