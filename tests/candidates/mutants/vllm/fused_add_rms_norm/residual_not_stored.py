# outcome: wrong value
# breaks: It leaves the residual as it was.

import torch


def fused_add_rms_norm(input, residual, weight, epsilon):
    x = input.double() + residual.double()
    input.copy_(x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double())
