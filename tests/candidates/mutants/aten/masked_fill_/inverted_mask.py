# outcome: wrong value
# breaks: It fills where the mask is False.

import torch


def masked_fill__Scalar(self, mask, value):
    return _fill(self, mask, torch.tensor(value))


def masked_fill__Tensor(self, mask, value):
    return _fill(self, mask, value)


def _fill(self, mask, value):
    value = value.to(device=self.device)
    self.copy_(torch.where(mask, self, value.to(self.dtype)))
    return self
