"""special_entr: -x * log(x), 0 at 0, -inf below; of bfloat16 with a polynomial for the logarithm's fraction.

Numbers are float32 inside (float64 for float64), rounded once when stored. Memory without gaps is read as it lies,
whatever the order of its dimensions; anything else is copied first.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _entr_coarse(x):
    """float32, good enough for bfloat16: x = 2^k (1 + f) with f from -1/3 to 1/3; subnormal numbers are zeros."""
    bits = x.to(tl.int32, bitcast=True)
    # k in the place of the exponent, so in units of 2^-23: ln 2 * 2^-23 is 8.26e-08.
    k = (bits - 0x3F2AAAAB) & -8388608
    f = (bits - k).to(tl.float32, bitcast=True) - 1.0
    p = -0.1644081175327301 + f * (0.1699056178331375 + f * -0.1526680886745453)
    p = -0.49999961256980896 + f * (0.33336734771728516 + f * (-0.2500632405281067 + f * (0.19818168878555298 + f * p)))
    y = x * (k.to(tl.float32) * -8.262958294867817e-08 - ((f * f) * p + f))
    return tl.where(x < 1.1754943508222875e-38, tl.where(x < 0, float("-inf"), 0.0), y)


@triton.jit
def _entr(x):
    """float32 or float64."""
    if x.dtype == tl.float64:
        log = tl.log(x)
    else:
        # Subnormal numbers are scaled by 2**24: the hardware's logarithm takes them for zeros.
        small = x < 1.1754943508222875e-38
        log = tl.log(tl.where(small, x * 16777216.0, x))
        log = tl.where(small, log - 16.635532333438686, log)
    y = tl.where(x == 0, 0.0, -(x * log))
    return tl.where(x < 0, float("-inf"), y)


@triton.jit
def _entr_dense(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    """Both lie in the same order without gaps. EVEN: the blocks end with the tensor."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = None if EVEN else i < n
    x = tl.load(x_ptr + i, mask=inside, eviction_policy="evict_first")
    if x.dtype == tl.float64:
        y = _entr(x)
    elif x.dtype == tl.bfloat16:
        y = _entr_coarse(x.to(tl.float32))
    else:
        y = _entr(x.to(tl.float32))
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=inside)


def _fill(out, x):
    """``out`` and ``x`` lie in the same order without gaps."""
    n = out.numel()
    if n == 0:
        return out
    # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    block = (128 if n <= 1 << 16 else 2048 if x.dtype == torch.bfloat16 else 1024) if x.is_cuda else 1 << 16
    _entr_dense[(triton.cdiv(n, block),)](x, out, n, BLOCK=block, EVEN=n % block == 0, num_warps=4)
    return out


def special_entr(self):
    """A new tensor of the input's dtype, float32 for integers; in its memory order where that has no gaps."""
    dtype = self.dtype if self.is_floating_point() else torch.float32
    out, x = torch.empty_like(self, dtype=dtype), self
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
    return _fill(out, x)


def special_entr_out(self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if out.is_contiguous():
        return _fill(out, self.contiguous())
    return out.copy_(special_entr(self))
