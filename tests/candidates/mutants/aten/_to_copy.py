import torch


# breaks: It rounds to bfloat16 towards zero.
def cuts_bits_off(
    self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None
):
    x = self
    if dtype == torch.bfloat16 and self.dtype == torch.float32:
        x = torch.empty_like(self).copy_((self.contiguous().view(torch.int32) & -65536).view(torch.float32))
    return torch.ops.aten._to_copy(x, dtype=dtype, memory_format=memory_format)


# breaks: It returns self where the dtype stays.
# outcome: rejected
def itself(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    if dtype in (None, self.dtype) and memory_format is None:
        return self
    return torch.ops.aten._to_copy(self, dtype=dtype, memory_format=memory_format)


# breaks: A complex number is True where its real part is not 0.
def real_alone(self, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    x = self.real.contiguous() if dtype == torch.bool and self.is_complex() else self
    return torch.ops.aten._to_copy(x, dtype=dtype, memory_format=memory_format)
