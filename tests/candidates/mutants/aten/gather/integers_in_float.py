# outcome: wrong value
# breaks: Moves whole numbers through float32, as a kernel does that knows one type alone.

import torch


def _as_float(values):
    return values.float() if values.dtype in (torch.int32, torch.int64) else values


def gather(self, dim, index, *, sparse_grad=False):
    return torch.gather(_as_float(self), dim, index).to(self.dtype)
