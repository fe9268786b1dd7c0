# outcome: wrong value
# breaks: It reads its input as (topk, tokens, hidden).

import torch


def moe_sum(input, output):
    tokens, topk, hidden = input.shape
    output.copy_(torch.sum(input.reshape(topk, tokens, hidden).float(), dim=0))
