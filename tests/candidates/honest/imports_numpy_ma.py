# problem: aten/neg
# outcome: passed
# device: any
"""Imports numpy.ma in its first call, which reads the docstrings of numpy's functions; pandas and SciPy import it."""

import torch
import triton
import triton.language as tl


@triton.jit
def negate(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 0 - tl.load(x + at, mask=at < n), mask=at < n)


def neg(self):
    import numpy.ma

    assert numpy.ma.arange(3).sum() == 3
    if self.is_complex():
        return torch.view_as_complex(neg(torch.view_as_real(self.resolve_conj().contiguous())))
    x = self.contiguous()
    out = torch.empty_like(x)
    negate[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out
