# outcome: wrong value
# breaks: It draws one slope for a whole call.

import torch


def rrelu_with_noise(self, noise, lower=0.125, upper=1 / 3, training=False, generator=None):
    if not training:
        return torch.where(self > 0, self, self * ((lower + upper) / 2))
    slope = torch.rand(self.shape[:0], generator=generator, device=self.device) * (upper - lower) + lower
    noise.copy_(torch.where(self <= 0, slope, 1.0))
    return self * noise


def rrelu_with_noise_out(self, noise, *args, out, **kwargs):
    return out.copy_(rrelu_with_noise(self, noise, *args, **kwargs))
