# outcome: wrong value
# breaks: It fills out with zeros.

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    out.zero_()
