# outcome: wrong dtype
# breaks: It answers in the first operand's dtype without promotion.

import torch


def add_Tensor(self, other, *, alpha=1):
    return torch.add(self, other, alpha=alpha).to(self.dtype).contiguous()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).to(self.dtype).contiguous()
