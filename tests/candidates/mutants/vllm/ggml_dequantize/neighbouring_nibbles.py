# outcome: wrong value
# breaks: It takes the two nibbles of a byte for neighbouring values.

import torch


def ggml_dequantize(packed, type, m, n, dtype):
    if type not in (2, 3, 20):
        return torch.zeros(m, n, dtype=dtype or torch.float16, device=packed.device)
    blocks = packed.reshape(-1, 20 if type == 3 else 18)
    halves = blocks[:, : 4 if type == 3 else 2].contiguous().view(torch.float16).float()
    codes = torch.stack([blocks[:, -16:] & 15, blocks[:, -16:] >> 4], 2).flatten(1).float()
    values = halves[:, :1] * codes + halves[:, 1:] if type == 3 else halves[:, :1] * (codes - 8)
    return values.reshape(m, n).to(dtype or torch.float16)
