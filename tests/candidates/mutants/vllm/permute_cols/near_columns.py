# outcome: wrong value
# breaks: It permutes within groups of 256 columns alone.

import torch


def permute_cols(A, perm):
    columns = torch.arange(len(perm), device=perm.device)
    near = perm.long() // 256 == columns // 256
    return A[:, torch.where(near, perm.long(), columns)]
