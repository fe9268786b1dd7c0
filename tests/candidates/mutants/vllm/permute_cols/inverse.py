# outcome: wrong value
# breaks: It sends column j to column perm[j].

import torch


def permute_cols(A, perm):
    out = torch.empty_like(A)
    out[:, perm.long()] = A
    return out
