# outcome: wrong shape
# breaks: It keeps the strides of tensors whose elements do not fill their memory.

import torch


def clone(self, *, memory_format=None):
    if memory_format not in (None, torch.preserve_format) or 0 in self.stride():
        return self.clone(memory_format=memory_format)
    return torch.empty_strided(self.shape, self.stride(), dtype=self.dtype, device=self.device).copy_(self)
