# outcome: wrong value
# breaks: Compares bytes as if they had a sign.

import torch


def amin(self, dim=(), keepdim=False):
    if self.dtype != torch.uint8:
        return torch.amin(self, dim, keepdim)
    return torch.amin(self.view(torch.int8), dim, keepdim).view(torch.uint8)


def amin_out(self, dim=(), keepdim=False, *, out):
    return out.copy_(amin(self, dim, keepdim))
