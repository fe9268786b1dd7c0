# outcome: wrong value
# breaks: It takes the mean over the first half of the row.

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x)[..., : (x.shape[-1] + 1) // 2].mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean + epsilon) * weight.double())
