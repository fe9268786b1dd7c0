import torch


# breaks: It shares self's memory.
# outcome: rejected
def itself(self, *, memory_format=None):
    return self.view(self.shape)


# breaks: Its copies are row-major always.
# outcome: wrong shape
def row_major(self, *, memory_format=None):
    return torch.empty(self.shape, dtype=self.dtype, device=self.device).copy_(self)


# breaks: It keeps the strides of tensors whose elements do not fill their memory.
# outcome: wrong shape
def same_strides(self, *, memory_format=None):
    if memory_format not in (None, torch.preserve_format) or 0 in self.stride():
        return self.clone(memory_format=memory_format)
    return torch.empty_strided(self.shape, self.stride(), dtype=self.dtype, device=self.device).copy_(self)
