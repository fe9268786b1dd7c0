# outcome: wrong value
# breaks: It computes in float16, also for float32.

import torch


def softmax_int(self, dim, dtype=None):
    x = self.to(torch.float64)
    e = torch.exp((x - x.amax(dim, keepdim=True)).half()) if x.numel() else x
    return (e / e.sum(dim, keepdim=True)).to(dtype or self.dtype).contiguous()
