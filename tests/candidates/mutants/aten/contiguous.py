import torch


# breaks: It knows row-major order alone.
# outcome: wrong shape
def ignores_memory_format(self, *, memory_format=torch.contiguous_format):
    return self.contiguous()


# breaks: It returns the input whatever its strides are.
# outcome: wrong shape
def input_itself(self, *, memory_format=None):
    return self
