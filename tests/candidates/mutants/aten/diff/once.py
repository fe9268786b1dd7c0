# outcome: wrong shape
# breaks: It takes n for 1.

import torch


def diff(self, n=1, dim=-1, prepend=None, append=None):
    return torch.diff(self, min(n, 1), dim, prepend, append)
