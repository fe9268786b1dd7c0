# outcome: wrong value
# breaks: It leaves the last column unwritten.

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    y = x / torch.sqrt(mean + epsilon) * weight.double()
    out[..., :-1] = y[..., :-1].to(out.dtype)
