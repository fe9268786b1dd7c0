import torch


# breaks: It computes -1 - x by way of float32.
def by_float(self):
    if self.dtype == torch.bool:
        return torch.logical_not(self)
    return (-1 - self.to(torch.float32)).to(self.dtype).contiguous()


# breaks: It changes the sign: -x in place of -x - 1.
def negates(self):
    return torch.logical_not(self) if self.dtype == torch.bool else (-self).contiguous()
