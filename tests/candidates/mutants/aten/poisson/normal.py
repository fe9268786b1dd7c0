# outcome: wrong value
# breaks: It rounds a normal number of the right mean and variance at every rate.

import torch


def _counts(rates, generator):
    wide = rates.to(torch.float64)
    drawn = torch.randn(rates.shape, dtype=torch.float64, generator=generator, device=rates.device)
    return (wide + wide.sqrt() * drawn).round().clamp_min(0).to(rates.dtype)


def poisson(self, generator=None):
    return _counts(self, generator)


def poisson_out(self, generator=None, *, out):
    return out.copy_(_counts(self, generator))
