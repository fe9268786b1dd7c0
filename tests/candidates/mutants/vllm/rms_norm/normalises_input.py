# outcome: input changed
# breaks: It leaves the result in its input, too.

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_(x / torch.sqrt(mean + epsilon) * weight.double())
    input.copy_(out)
