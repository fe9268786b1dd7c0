import torch


def _flipped(like, p, generator, out=None):
    bits = torch.randint(0, 256, like.shape, generator=generator, device=like.device)
    flips = bits < p * 256
    return flips.to(like.dtype) if out is None else out.copy_(flips)


# breaks: It compares with numbers of 8 bits, so that rare ones never come.
def eight_bits(self, *, generator=None):
    return _flipped(self, self, generator)


def eight_bits__p(self, p, *, generator=None):
    return _flipped(self, p, generator)


def eight_bits__Tensor(self, p, *, generator=None):
    return _flipped(self, p, generator)


def eight_bits__out(self, *, generator=None, out):
    return _flipped(self, self, generator, out)


def eight_bits__Tensor_out(self, p, *, generator=None, out):
    return _flipped(self, p, generator, out)


def eight_bits__float_out(self, p=0.5, *, generator=None, out):
    return _flipped(self, p, generator, out)
