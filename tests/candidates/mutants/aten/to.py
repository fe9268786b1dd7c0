import torch


# breaks: It copies also where self is right.
def always_copies(self, dtype, non_blocking=False, copy=False, memory_format=None):
    if memory_format is None:
        return self.to(dtype, copy=True)
    return self.to(dtype, copy=True, memory_format=memory_format)


# breaks: It returns self also where a copy is asked, first in a layout that the copy has not.
# outcome: wrong shape
def ignores_copy(self, dtype, non_blocking=False, copy=False, memory_format=None):
    return self.to(dtype) if memory_format is None else self.to(dtype, memory_format=memory_format)


# breaks: A complex number is True where its real part is not 0.
def real_part_alone(self, dtype, non_blocking=False, copy=False, memory_format=None):
    x = self.real.contiguous() if dtype == torch.bool and self.is_complex() else self
    return x.to(dtype, copy=copy, memory_format=torch.preserve_format if memory_format is None else memory_format)
