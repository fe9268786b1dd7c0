# outcome: wrong value
# breaks: It scans from the end and subtracts from the total, so that an infinity or NaN is everywhere.

import torch


def cumsum(self, dim, *, dtype=None):
    out = torch.cumsum(self, dim, dtype=dtype)
    if out.dim() == 0 or not out.numel() or not out.is_floating_point():
        return out
    values = self.to(out.dtype)
    behind = torch.cumsum(values.flip(dim), dim).flip(dim) - values
    return torch.where(torch.isfinite(out) & torch.isfinite(behind), out, values.sum(dim, keepdim=True) - behind)
