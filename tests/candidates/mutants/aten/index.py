import torch


# breaks: It takes negative indices for 0.
def clamps_negative(self, indices):
    kept = [each if each is None or each.dtype == torch.bool else each.clamp(min=0) for each in indices]
    return torch.ops.aten.index.Tensor(self, kept)


# breaks: It puts the indices' dimensions in front wherever they stand.
# outcome: wrong shape
def indexed_in_front(self, indices):
    front = next((at for at, each in enumerate(indices) if each is not None), len(indices))
    out = torch.ops.aten.index.Tensor(self, indices)
    together = all(each is not None for each in indices[front:])
    if front == 0 or not together:
        return out
    return out.movedim(tuple(range(front)), tuple(range(out.dim() - front, out.dim()))).contiguous()
