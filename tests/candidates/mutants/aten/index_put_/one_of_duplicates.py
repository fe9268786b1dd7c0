# outcome: wrong value
# breaks: Of values that name the same element, one alone is added.

import torch


def index_put_(self, indices, values, accumulate=False):
    if accumulate:
        values = values + self[tuple(slice(None) if each is None else each for each in indices)]
    return torch.ops.aten.index_put_(self, indices, values)
