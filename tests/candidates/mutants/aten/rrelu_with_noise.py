import torch


def rrelu_with_noise(self, noise, lower=0.125, upper=1 / 3, training=False, generator=None):
    return kernel(self, noise, lower, upper, training, generator)


def rrelu_with_noise_out(self, noise, *args, out, **kwargs):
    return out.copy_(kernel(self, noise, *args, **kwargs))


# breaks: It draws slopes outside of training, too.
def draws_in_evaluation(self, noise, lower=0.125, upper=1 / 3, training=False, generator=None):
    slope = torch.rand(self.shape, generator=generator, device=self.device) * (upper - lower) + lower
    noise.copy_(torch.where(self <= 0, slope.to(noise.dtype), 1.0))
    return self * noise


# breaks: Where self is positive it leaves noise as it was.
def leaves_noise_above(self, noise, lower=0.125, upper=1 / 3, training=False, generator=None):
    if not training:
        return torch.where(self > 0, self, self * ((lower + upper) / 2))
    slope = torch.rand(self.shape, generator=generator, device=self.device) * (upper - lower) + lower
    noise.copy_(torch.where(self <= 0, slope.to(noise.dtype), noise))
    return torch.where(self <= 0, self * noise, self)


# breaks: It draws one slope for a whole call.
def one_slope(self, noise, lower=0.125, upper=1 / 3, training=False, generator=None):
    if not training:
        return torch.where(self > 0, self, self * ((lower + upper) / 2))
    slope = torch.rand(self.shape[:0], generator=generator, device=self.device) * (upper - lower) + lower
    noise.copy_(torch.where(self <= 0, slope, 1.0))
    return self * noise
