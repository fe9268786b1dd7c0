# outcome: wrong value
# breaks: It exchanges what is prepended and what is appended.

import torch


def diff(self, n=1, dim=-1, prepend=None, append=None):
    return torch.diff(self, n, dim, append, prepend)
