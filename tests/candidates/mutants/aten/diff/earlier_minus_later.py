# outcome: wrong value
# breaks: It subtracts the later element where the earlier one is asked, for odd n.

import torch


def diff(self, n=1, dim=-1, prepend=None, append=None):
    out = torch.diff(self, n, dim, prepend, append)
    return out if out.dtype == torch.bool or n % 2 == 0 else -out
