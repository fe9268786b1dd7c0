# outcome: wrong value
# breaks: It normalises the input alone, and adds it to the residual all the same.

import torch


def fused_add_rms_norm(input, residual, weight, epsilon):
    x = input.double()
    residual.copy_(x + residual.double())
    input.copy_(x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double())
