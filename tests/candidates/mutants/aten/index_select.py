import torch


def _as_float(values):
    return values.float() if values.dtype in (torch.int32, torch.int64) else values


# breaks: Moves whole numbers through float32, as a kernel does that knows one type alone.
def integers_in_float(self, dim, index):
    return torch.index_select(_as_float(self), dim, index).to(self.dtype)


# breaks: It chooses by the order of the indices, not by the indices.
def sorts_indices(self, dim, index):
    return torch.index_select(self, dim, index.reshape(-1).sort().values)
