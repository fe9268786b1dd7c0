# outcome: wrong value
# breaks: It converts the number to float32 first.

import torch


def masked_fill__Scalar(self, mask, value):
    return _fill(self, mask, torch.tensor(value))


def masked_fill__Tensor(self, mask, value):
    return _fill(self, mask, value)


def _fill(self, mask, value):
    value = value.to(device=self.device)
    self.copy_(torch.where(mask, value if value.is_complex() else value.to(torch.float32).to(self.dtype), self))
    return self
