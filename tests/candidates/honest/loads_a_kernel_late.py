# problem: aten/neg
# outcome: passed
# device: cuda
"""Goes over to larger blocks after a while: the new kernel is compiled and loaded in the middle of a timed window."""

import torch
import triton
import triton.language as tl

CALLS = {}


@triton.jit
def turned(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 0 - tl.load(x + at, mask=at < n), mask=at < n)


def neg(self):
    if self.is_complex():
        return torch.view_as_complex(neg(torch.view_as_real(self.contiguous())))
    out = torch.empty_like(self)
    if n := self.numel():
        flat, made = self.contiguous(), torch.empty(self.shape, dtype=self.dtype, device=self.device)
        calls = CALLS[self.dtype, self.shape] = CALLS.get((self.dtype, self.shape), 0) + 1
        block = 512 if calls <= 60 else 2048
        turned[(triton.cdiv(n, block),)](flat, made, n, BLOCK=block)
        out.copy_(made)
    return out
