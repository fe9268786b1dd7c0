import torch


# breaks: It exchanges what is prepended and what is appended.
def append_in_front(self, n=1, dim=-1, prepend=None, append=None):
    return torch.diff(self, n, dim, append, prepend)


# breaks: It subtracts the later element where the earlier one is asked, for odd n.
def earlier_minus_later(self, n=1, dim=-1, prepend=None, append=None):
    out = torch.diff(self, n, dim, prepend, append)
    return out if out.dtype == torch.bool or n % 2 == 0 else -out


# breaks: It takes n for 1.
# outcome: wrong shape
def once(self, n=1, dim=-1, prepend=None, append=None):
    return torch.diff(self, min(n, 1), dim, prepend, append)
