# outcome: wrong value
# breaks: It puts equal elements in reverse order.

import torch


def sort_stable(self, *, stable, dim=-1, descending=False):
    values, places = torch.sort(self.flip(dim) if self.dim() else self, dim=dim, descending=descending, stable=True)
    return values, self.shape[dim] - 1 - places if self.dim() else places
