# outcome: wrong value
# breaks: It draws all numbers at the mean of the rates.

import torch


def _counts(rates, generator):
    mean = rates.to(torch.float64).mean() if rates.numel() else 0.0
    return torch.poisson(torch.full(rates.shape, float(mean), device=rates.device), generator).to(rates.dtype)


def poisson(self, generator=None):
    return _counts(self, generator)


def poisson_out(self, generator=None, *, out):
    return out.copy_(_counts(self, generator))
