# outcome: wrong value
# breaks: It subtracts the mean first.

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    x = x - x.mean(-1, keepdim=True)
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean + epsilon) * weight.double())
