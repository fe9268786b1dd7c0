import torch


# breaks: It adds in the input's own dtype and converts the sums.
def dtype_afterwards(self, dim, *, dtype=None):
    if dtype is None:
        return torch.cumsum(self, dim)
    own = torch.cumsum(self, dim, dtype=self.dtype if self.dtype != torch.bool else torch.int64)
    return own.to(dtype)


# breaks: It leaves each element out of its own sum.
def exclusive(self, dim, *, dtype=None):
    out = torch.cumsum(self, dim, dtype=dtype)
    return out - self.to(out.dtype)


# breaks: It begins a new sum after every 1024 elements.
def starts_anew(self, dim, *, dtype=None):
    if self.dim() == 0 or self.shape[dim] <= 1024:
        return torch.cumsum(self, dim, dtype=dtype)
    return torch.cat([torch.cumsum(part, dim, dtype=dtype) for part in self.split(1024, dim)], dim)


# breaks: It scans from the end and subtracts from the total, so that an infinity or NaN is everywhere.
def subtracts(self, dim, *, dtype=None):
    out = torch.cumsum(self, dim, dtype=dtype)
    if out.dim() == 0 or not out.numel() or not out.is_floating_point():
        return out
    values = self.to(out.dtype)
    behind = torch.cumsum(values.flip(dim), dim).flip(dim) - values
    return torch.where(torch.isfinite(out) & torch.isfinite(behind), out, values.sum(dim, keepdim=True) - behind)
