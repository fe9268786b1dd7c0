# outcome: wrong value
# breaks: It copies its input.

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_(input)
