# outcome: rejected
# breaks: It changes self and returns a copy.

import torch


def index_put_(self, indices, values, accumulate=False):
    return torch.ops.aten.index_put_(self, indices, values, accumulate=accumulate).clone()
