# outcome: wrong value
# breaks: It answers zeros for padding_idx.

import torch


def embedding(weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False):
    out = torch.embedding(weight, indices)
    if padding_idx >= 0:
        out[indices == padding_idx] = 0
    return out
