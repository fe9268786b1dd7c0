# outcome: wrong value
# breaks: Finds the largest of whole numbers as float32.

import torch


def argmax(self, dim=None, keepdim=False):
    return torch.argmax(self.float() if self.dtype in (torch.int32, torch.int64) else self, dim, keepdim)
