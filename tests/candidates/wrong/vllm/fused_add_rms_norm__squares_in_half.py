# outcome: wrong value
# breaks: The stored sum is squared in its dtype and only the sum of squares is float32: float16 overflows from 256 on.

import torch


def fused_add_rms_norm(input, residual, weight, epsilon):
    residual += input
    mean = (residual * residual).sum(-1, keepdim=True, dtype=torch.float32) / residual.shape[-1]
    input.copy_(residual.float() * torch.rsqrt(mean + epsilon) * weight.float())
