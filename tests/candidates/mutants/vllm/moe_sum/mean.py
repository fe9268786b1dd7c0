# outcome: wrong value
# breaks: It answers the mean of a token's experts.

import torch


def moe_sum(input, output):
    output.copy_(torch.mean(input.float(), dim=1))
