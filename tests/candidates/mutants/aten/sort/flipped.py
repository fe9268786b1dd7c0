# outcome: wrong value
# breaks: It sorts in ascending order and turns that round, which turns equal elements round, too.

import torch


def sort_stable(self, *, stable, dim=-1, descending=False):
    values, places = torch.sort(self, dim=dim, stable=True)
    if descending and self.dim():
        return values.flip(dim), places.flip(dim)
    return values, places
