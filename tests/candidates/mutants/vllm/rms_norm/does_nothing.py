# outcome: wrong value
# breaks: It writes nothing.

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    del mean
