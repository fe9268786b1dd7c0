# outcome: wrong value
# breaks: It takes self to be as large as the index in the other dimensions when it finds an element's address.

import torch


def gather(self, dim, index, *, sparse_grad=False):
    if index.dim() < 2 or index.numel() == 0:
        return torch.gather(self, dim, index)
    sizes = list(index.shape)
    sizes[dim] = self.shape[dim]
    return torch.gather(self.reshape(-1)[: torch.Size(sizes).numel()].reshape(sizes), dim, index)
