# outcome: wrong shape
# breaks: It puts the indices' dimensions in front wherever they stand.

import torch


def index_Tensor(self, indices):
    front = next((at for at, each in enumerate(indices) if each is not None), len(indices))
    out = torch.ops.aten.index.Tensor(self, indices)
    together = all(each is not None for each in indices[front:])
    if front == 0 or not together:
        return out
    return out.movedim(tuple(range(front)), tuple(range(out.dim() - front, out.dim()))).contiguous()
