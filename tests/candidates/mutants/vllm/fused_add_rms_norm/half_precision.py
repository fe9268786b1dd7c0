# outcome: wrong value
# breaks: It squares and sums in float16.

import torch


def fused_add_rms_norm(input, residual, weight, epsilon):
    x = input.double() + residual.double()
    residual.copy_(x)
    mean = (x.half() * x.half()).mean(-1, keepdim=True)
    input.copy_(x / torch.sqrt(mean + epsilon) * weight.double())
