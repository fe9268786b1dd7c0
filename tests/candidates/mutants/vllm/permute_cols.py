import torch


# breaks: It sends column j to column perm[j].
def inverse(A, perm):
    out = torch.empty_like(A)
    out[:, perm.long()] = A
    return out


# breaks: It permutes within groups of 256 columns alone.
def near_columns(A, perm):
    columns = torch.arange(len(perm), device=perm.device)
    near = perm.long() // 256 == columns // 256
    return A[:, torch.where(near, perm.long(), columns)]
