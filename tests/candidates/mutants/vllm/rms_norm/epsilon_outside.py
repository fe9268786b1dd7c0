# outcome: wrong value
# breaks: It adds epsilon to the root, not to the mean.

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_(x / (torch.sqrt(mean) + epsilon) * weight.double())
