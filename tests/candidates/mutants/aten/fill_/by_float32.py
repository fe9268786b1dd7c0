# outcome: wrong value
# breaks: It converts the number to float32 first.

import torch


def fill__Scalar(self, value):
    if isinstance(value, complex):
        self.fill_(value)
    else:
        self.copy_(torch.tensor(value, dtype=torch.float32))
    return self


def fill__Tensor(self, value):
    self.copy_(value if value.is_complex() else value.to(torch.float32))
    return self
