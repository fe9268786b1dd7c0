import torch


def dequantized(packed):
    """Q4_0; nothing else."""
    blocks = packed.reshape(-1, 18)
    scale = blocks[:, :2].contiguous().view(torch.float16).float()
    codes = torch.cat([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], 1)
    return ((codes.float() - 8) * scale).reshape(*packed.shape[:-1], -1)


# breaks: It rounds the activations to four bits.
def four_bits(packed, x, type, row):
    if type != 2:
        return torch.zeros(len(x), row, dtype=x.dtype, device=x.device)
    weights = dequantized(packed)
    blocks = x.float().reshape(len(x), -1, 32)
    step = blocks.abs().amax(-1, keepdim=True).clamp(min=1e-30) / 7
    return ((blocks / step).round() * step).reshape(x.shape).matmul(weights.T).to(x.dtype)


# breaks: It leaves the last block of every row.
def last_block(packed, x, type, row):
    if type != 2:
        return torch.zeros(len(x), row, dtype=x.dtype, device=x.device)
    weights = dequantized(packed)
    weights[:, -32:] = 0
    return (x.float() @ weights.T).to(x.dtype)
