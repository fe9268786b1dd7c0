# outcome: wrong value
# breaks: Of equal elements it names the first place for all.

import torch


def sort_stable(self, *, stable, dim=-1, descending=False):
    values, places = torch.sort(self, dim=dim, stable=True, descending=descending)
    if stable or self.dim() == 0 or self.numel() == 0:
        return values, places
    rows = values.movedim(dim, -1)
    first = torch.nn.functional.pad(rows[..., 1:] != rows[..., :-1], (1, 0), value=True)
    at = torch.arange(rows.shape[-1], device=self.device).expand(rows.shape)
    start = torch.where(first, at, 0).cummax(-1).values
    return values, places.movedim(dim, -1).gather(-1, start).movedim(-1, dim)
