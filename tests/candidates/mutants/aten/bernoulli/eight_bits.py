# outcome: wrong value
# breaks: It compares with numbers of 8 bits, so that rare ones never come.

import torch


def _flipped(like, p, generator, out=None):
    bits = torch.randint(0, 256, like.shape, generator=generator, device=like.device)
    flips = bits < p * 256
    return flips.to(like.dtype) if out is None else out.copy_(flips)


def bernoulli(self, *, generator=None):
    return _flipped(self, self, generator)


def bernoulli_p(self, p, *, generator=None):
    return _flipped(self, p, generator)


def bernoulli_Tensor(self, p, *, generator=None):
    return _flipped(self, p, generator)


def bernoulli_out(self, *, generator=None, out):
    return _flipped(self, self, generator, out)


def bernoulli_Tensor_out(self, p, *, generator=None, out):
    return _flipped(self, p, generator, out)


def bernoulli_float_out(self, p=0.5, *, generator=None, out):
    return _flipped(self, p, generator, out)
