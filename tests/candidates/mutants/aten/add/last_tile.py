# outcome: wrong value
# breaks: It leaves the elements past the last full 128 at 0.

import torch


def add_Tensor(self, other, *, alpha=1):
    out = torch.add(self, other, alpha=alpha).contiguous()
    out.view(-1)[out.numel() // 128 * 128 :] = 0
    return out


def add_Scalar(self, other, alpha=1):
    return torch.add(self, other, alpha=alpha).contiguous()
