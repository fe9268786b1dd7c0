# outcome: wrong value
# breaks: It multiplies with lambd instead of dividing.

import torch


def exponential_(self, lambd=1.0, *, generator=None):
    drawn = torch.empty(self.shape, device=self.device).exponential_(1.0, generator=generator)
    return self.copy_(drawn * lambd)
