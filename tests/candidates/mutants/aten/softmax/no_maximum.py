# outcome: wrong value
# breaks: It does not subtract the maximum, so that exp overflows in float32.

import torch


def softmax_int(self, dim, dtype=None):
    x = self.to(torch.float32)
    e = torch.exp(x) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).to(dtype or self.dtype).contiguous()
