# outcome: wrong value
# breaks: It makes its numbers of 16 random bits.

import torch


def exponential_(self, lambd=1.0, *, generator=None):
    bits = torch.randint(0, 1 << 16, self.shape, generator=generator, device=self.device)
    return self.copy_(-torch.log((bits + 0.5) / 65536) / lambd)
