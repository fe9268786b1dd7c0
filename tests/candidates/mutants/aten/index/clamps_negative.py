# outcome: wrong value
# breaks: It takes negative indices for 0.

import torch


def index_Tensor(self, indices):
    kept = [each if each is None or each.dtype == torch.bool else each.clamp(min=0) for each in indices]
    return torch.ops.aten.index.Tensor(self, kept)
