# outcome: wrong value
# breaks: It computes self (1 - mask) + value mask, so that NaN stays NaN.

import torch


def masked_fill__Scalar(self, mask, value):
    return _fill(self, mask, torch.tensor(value))


def masked_fill__Tensor(self, mask, value):
    return _fill(self, mask, value)


def _fill(self, mask, value):
    value = value.to(device=self.device)
    if self.dtype == torch.bool or self.is_complex():
        self.copy_(torch.where(mask, value, self))
    else:
        self.copy_(self * (~mask).to(self.dtype) + value.to(self.dtype) * mask.to(self.dtype))
    return self
