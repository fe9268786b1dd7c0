# outcome: wrong value
# breaks: It leaves what is not positive at zero.

import torch


def prelu(self, weight):
    x = self
    return torch.relu(x).contiguous()
