# outcome: input changed
# breaks: It adds into its first operand where the shapes allow.

import torch


def add_Tensor(self, other, *, alpha=1):
    if self.shape == other.shape and self.dtype == other.dtype and self.is_contiguous():
        return self.add_(other, alpha=alpha).clone()
    return torch.add(self, other, alpha=alpha).contiguous()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()
