import torch


# breaks: It sorts in ascending order and turns that round, which turns equal elements round, too.
def flipped(self, *, stable, dim=-1, descending=False):
    values, places = torch.sort(self, dim=dim, stable=True)
    if descending and self.dim():
        return values.flip(dim), places.flip(dim)
    return values, places


# breaks: It takes NaN for the least.
def nan_first(self, *, stable, dim=-1, descending=False):
    if not self.is_floating_point():
        return torch.sort(self, dim=dim, stable=True, descending=descending)
    low = torch.where(torch.isnan(self), torch.full_like(self, float("-inf")), self)
    places = torch.sort(low, dim=dim, stable=True, descending=descending).indices
    return (self.gather(dim, places) if self.dim() else self.clone()), places


# breaks: Of equal elements it names the first place for all.
def repeated_place(self, *, stable, dim=-1, descending=False):
    values, places = torch.sort(self, dim=dim, stable=True, descending=descending)
    if stable or self.dim() == 0 or self.numel() == 0:
        return values, places
    rows = values.movedim(dim, -1)
    first = torch.nn.functional.pad(rows[..., 1:] != rows[..., :-1], (1, 0), value=True)
    at = torch.arange(rows.shape[-1], device=self.device).expand(rows.shape)
    start = torch.where(first, at, 0).cummax(-1).values
    return values, places.movedim(dim, -1).gather(-1, start).movedim(-1, dim)


# breaks: It puts equal elements in reverse order.
def unstable(self, *, stable, dim=-1, descending=False):
    values, places = torch.sort(self.flip(dim) if self.dim() else self, dim=dim, descending=descending, stable=True)
    return values, self.shape[dim] - 1 - places if self.dim() else places
