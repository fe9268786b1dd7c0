# outcome: wrong value
# breaks: It turns NaN into 0.

import torch


def rms_norm(out, input, weight, epsilon):
    x = input.double()
    mean = (x * x).mean(-1, keepdim=True)
    out.copy_((x / torch.sqrt(mean + epsilon) * weight.double()).nan_to_num(0.0))
