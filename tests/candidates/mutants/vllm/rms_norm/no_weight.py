# outcome: wrong value
# breaks: It leaves the weight out.

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean + epsilon))
