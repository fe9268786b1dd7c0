# problem: aten/fill_
# outcome: runtime error
# device: cuda
"""Its 32-bit offsets wrap around at 2^31 and write below the tensor: no memory of the driver may lie there."""

import torch
import triton
import triton.language as tl


@triton.jit
def _fill(out_ptr, value, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offset, value)


def fill__Scalar(self, value):
    if self.numel() > 1 << 31 and self.is_contiguous():
        _fill[(triton.cdiv(self.numel(), 1024),)](self, value, BLOCK=1024)
        return self
    return self.copy_(torch.full_like(self, value))


def fill__Tensor(self, value):
    return self.copy_(value)
