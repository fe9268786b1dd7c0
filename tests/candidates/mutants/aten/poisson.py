import torch


def poisson(self, generator=None):
    return kernel(self, generator)


def poisson_out(self, generator=None, *, out):
    return out.copy_(kernel(self, generator))


# breaks: It draws all numbers at the mean of the rates.
def mean_rate(rates, generator):
    mean = rates.to(torch.float64).mean() if rates.numel() else 0.0
    return torch.poisson(torch.full(rates.shape, float(mean), device=rates.device), generator).to(rates.dtype)


# breaks: It rounds a normal number of the right mean and variance at every rate.
def normal(rates, generator):
    wide = rates.to(torch.float64)
    drawn = torch.randn(rates.shape, dtype=torch.float64, generator=generator, device=rates.device)
    return (wide + wide.sqrt() * drawn).round().clamp_min(0).to(rates.dtype)
