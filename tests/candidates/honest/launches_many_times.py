# problem: aten/bitwise_not
# outcome: passed
# device: any
"""Eight launches where one would do, each for its share: pauses between kernels are no work of somebody else."""

import torch
import triton
import triton.language as tl


@triton.jit
def complement(x, out, first, last, BLOCK: tl.constexpr):
    at = first + tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, ~tl.load(x + at, mask=at < last), mask=at < last)


def bitwise_not(self):
    x = self.contiguous()
    out = torch.empty_like(x)
    n, block = x.numel(), 1024 if x.is_cuda else 1 << 16
    share = max(1, triton.cdiv(n, 8))
    for first in range(0, n, share):
        last = min(first + share, n)
        complement[(triton.cdiv(last - first, block),)](x, out, first, last, BLOCK=block)
    return out if self.is_contiguous() else torch.empty_like(self).copy_(out)
