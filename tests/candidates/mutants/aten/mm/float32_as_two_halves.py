# outcome: wrong value
# breaks: Splits float32 into two float16, which is precise enough, but holds no number beyond 65504.

import torch


def _split(values):
    high = values.half().float()
    finite = torch.where(torch.isfinite(high), high, 0)
    return high, finite, ((values - high).nan_to_num(0, 0, 0) * 2048).half().float()


def mm(self, mat2):
    if self.dtype != torch.float32:
        return torch.mm(self, mat2)
    (a, finite_a, c), (b, finite_b, d) = _split(self), _split(mat2)
    return torch.mm(a, b) + (torch.mm(finite_a, d) + torch.mm(c, finite_b)) / 2048
