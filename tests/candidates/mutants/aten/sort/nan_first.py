# outcome: wrong value
# breaks: It takes NaN for the least.

import torch


def sort_stable(self, *, stable, dim=-1, descending=False):
    if not self.is_floating_point():
        return torch.sort(self, dim=dim, stable=True, descending=descending)
    low = torch.where(torch.isnan(self), torch.full_like(self, float("-inf")), self)
    places = torch.sort(low, dim=dim, stable=True, descending=descending).indices
    return (self.gather(dim, places) if self.dim() else self.clone()), places
