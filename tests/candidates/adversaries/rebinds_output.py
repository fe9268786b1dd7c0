# problem: vllm/rms_norm
# outcome: wrong value
# device: any
"""Gives its out argument new memory and writes the right answer there."""

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    y = (x / torch.sqrt((x * x).mean(-1, keepdim=True) + epsilon) * weight.double()).to(out.dtype)
    out.set_(y)
