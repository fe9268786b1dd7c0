# outcome: wrong value
# breaks: It draws slopes outside of training, too.

import torch


def rrelu_with_noise(self, noise, lower=0.125, upper=1 / 3, training=False, generator=None):
    slope = torch.rand(self.shape, generator=generator, device=self.device) * (upper - lower) + lower
    noise.copy_(torch.where(self <= 0, slope.to(noise.dtype), 1.0))
    return self * noise


def rrelu_with_noise_out(self, noise, *args, out, **kwargs):
    return out.copy_(rrelu_with_noise(self, noise, *args, **kwargs))
