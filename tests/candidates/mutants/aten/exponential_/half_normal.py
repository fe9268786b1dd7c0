# outcome: wrong value
# breaks: It answers the absolute values of normal numbers, of the right mean.

import torch


def exponential_(self, lambd=1.0, *, generator=None):
    drawn = torch.randn(self.shape, generator=generator, device=self.device)
    return self.copy_(drawn.abs() * (1.2533141373155001 / lambd))
