# outcome: rejected
# breaks: It changes self and returns a copy.

import torch


def _index_put_impl_(self, indices, values, accumulate=False, unsafe=False):
    return torch.ops.aten.index_put_(self, indices, values, accumulate=accumulate).clone()
