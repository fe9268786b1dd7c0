# outcome: wrong value
# breaks: It takes rows for adjacent, whatever their stride is.

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.as_strided(input.shape, out.stride()).double()
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean + epsilon) * weight.double())
