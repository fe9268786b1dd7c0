# outcome: wrong value
# breaks: It leaves out the experts past the fourth.

import torch


def moe_sum(input, output):
    output.copy_(torch.sum(input[:, :4].float(), dim=1))
