# outcome: wrong value
# breaks: It squares and sums in float16.

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    mean = (x.half() * x.half()).mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean + epsilon) * weight.double())
