# outcome: wrong value
# breaks: It reads the mask element by element, from the beginning where it ends.

import torch


def masked_fill__Scalar(self, mask, value):
    return _fill(self, mask, torch.tensor(value))


def masked_fill__Tensor(self, mask, value):
    return _fill(self, mask, value)


def _fill(self, mask, value):
    value = value.to(device=self.device)
    flat = mask.reshape(-1)
    full = flat.repeat(-(-self.numel() // flat.numel()))[: self.numel()] if flat.numel() else flat
    self.copy_(torch.where(full.reshape(self.shape), value.to(self.dtype), self))
    return self
