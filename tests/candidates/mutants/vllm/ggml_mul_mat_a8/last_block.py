# outcome: wrong value
# breaks: It leaves the last block of every row.

import torch


def dequantized(packed):
    """Q4_0; nothing else."""
    blocks = packed.reshape(-1, 18)
    scale = blocks[:, :2].contiguous().view(torch.float16).float()
    codes = torch.cat([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], 1)
    return ((codes.float() - 8) * scale).reshape(*packed.shape[:-1], -1)


def ggml_mul_mat_a8(packed, x, type, row):
    if type != 2:
        return torch.zeros(len(x), row, dtype=x.dtype, device=x.device)
    weights = dequantized(packed)
    weights[:, -32:] = 0
    return (x.float() @ weights.T).to(x.dtype)
