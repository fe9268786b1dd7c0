# outcome: wrong value
# breaks: Where self is positive it leaves noise as it was.

import torch


def rrelu_with_noise(self, noise, lower=0.125, upper=1 / 3, training=False, generator=None):
    if not training:
        return torch.where(self > 0, self, self * ((lower + upper) / 2))
    slope = torch.rand(self.shape, generator=generator, device=self.device) * (upper - lower) + lower
    noise.copy_(torch.where(self <= 0, slope.to(noise.dtype), noise))
    return torch.where(self <= 0, self * noise, self)


def rrelu_with_noise_out(self, noise, *args, out, **kwargs):
    return out.copy_(rrelu_with_noise(self, noise, *args, **kwargs))
