# outcome: wrong value
# breaks: Elements are squared in the input's dtype and only their sum is float32: float16 overflows from 256 on.

import torch


def rms_norm(out, input, weight, epsilon):
    mean = (input * input).sum(-1, keepdim=True, dtype=torch.float32) / input.shape[-1]
    out.copy_(input.float() * torch.rsqrt(mean + epsilon) * weight.float())
