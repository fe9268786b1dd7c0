# outcome: wrong value
# breaks: It rounds alpha * other to bfloat16 before it adds.

import torch


def add_Tensor(self, other, *, alpha=1):
    if other.is_floating_point():
        other, alpha = (other * alpha).bfloat16().to(other.dtype), 1
    return torch.add(self, other, alpha=alpha).contiguous()


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()
