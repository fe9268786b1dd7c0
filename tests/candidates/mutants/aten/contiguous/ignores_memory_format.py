# outcome: wrong shape
# breaks: It knows row-major order alone.

import torch


def contiguous(self, *, memory_format=torch.contiguous_format):
    return self.contiguous()
