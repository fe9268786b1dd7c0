# outcome: wrong value
# breaks: It computes -1 - x by way of float32.

import torch


def bitwise_not(self):
    if self.dtype == torch.bool:
        return torch.logical_not(self)
    return (-1 - self.to(torch.float32)).to(self.dtype).contiguous()
