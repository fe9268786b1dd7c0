import torch


# breaks: It reads as index_select does, with the indices of the first row for every row.
def indices_of_first_row(self, dim, index, *, sparse_grad=False):
    if index.dim() == 0 or index.numel() == 0:
        return torch.gather(self, dim, index)
    flat = index.movedim(dim, 0).reshape(index.shape[dim], -1)
    same = flat[:, :1].expand_as(flat).reshape(index.movedim(dim, 0).shape).movedim(0, dim)
    return torch.gather(self, dim, same)


def _as_float(values):
    return values.float() if values.dtype in (torch.int32, torch.int64) else values


# breaks: Moves whole numbers through float32, as a kernel does that knows one type alone.
def integers_in_float(self, dim, index, *, sparse_grad=False):
    return torch.gather(_as_float(self), dim, index).to(self.dtype)


# breaks: It takes self to be as large as the index in the other dimensions when it finds an element's address.
def whole_other_dimensions(self, dim, index, *, sparse_grad=False):
    if index.dim() < 2 or index.numel() == 0:
        return torch.gather(self, dim, index)
    sizes = list(index.shape)
    sizes[dim] = self.shape[dim]
    return torch.gather(self.reshape(-1)[: torch.Size(sizes).numel()].reshape(sizes), dim, index)
