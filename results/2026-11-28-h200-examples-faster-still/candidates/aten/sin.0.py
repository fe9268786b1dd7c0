"""sin: x = n pi + r with pi in three parts, then a polynomial in r * r; the sign is that of odd n.

Blocks with large numbers, infinities or NaN take tl.sin. Numbers are float32 inside (float64 for float64 and complex
numbers), rounded once when stored. Memory without gaps is read as it lies, whatever the order of its dimensions;
anything else is copied first.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _near_zero(x):
    """float32, for |x| up to 24,000: products of n, which is below 2^13, with the parts of pi are exact."""
    # 1.5 * 2^23: the sum has n in its lowest bits.
    shifted = x * 0.3183098861837907 + 12582912.0
    n = shifted - 12582912.0
    r = x - n * 3.140625
    r = r - n * 9.67502593994140625e-4
    r = r - n * 1.509957990978376e-7
    z = r * r
    p = 8.333004779562595e-3 + z * (-1.9805710625286576e-4 + z * 2.5980543367230444e-6)
    p = -1.6666656586621204e-1 + z * p
    # A product, in which zeros keep their sign.
    y = r * (z * p + 1.0)
    odd = shifted.to(tl.int32, bitcast=True) << 31
    return (y.to(tl.int32, bitcast=True) ^ odd).to(tl.float32, bitcast=True)


@triton.jit
def _sin(x):
    if x.dtype == tl.float64:
        y = tl.where(x == 0, x, tl.sin(x))
    # 24,000^2. Infinities make the sum infinite or NaN, and so does NaN.
    elif tl.sum(x * x) <= 5.76e8:
        y = _near_zero(x)
    else:
        y = tl.sin(x)
    return y


@triton.jit
def _sin_real(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr, WIDE: tl.constexpr):
    """Both lie in the same order without gaps. EVEN: the blocks end with the tensor."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = None if EVEN else i < n
    x = tl.load(x_ptr + i, mask=inside, other=None if EVEN else 0, eviction_policy="evict_first")
    tl.store(out_ptr + i, _sin(x.to(WIDE)).to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _sin_complex(z_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Pairs (a, b): sin(a) cosh(b) + i cos(a) sinh(b)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(z_ptr + 2 * i, mask=i < n, other=0.0).to(tl.float64)
    b = tl.load(z_ptr + 2 * i + 1, mask=i < n, other=0.0).to(tl.float64)
    # exp(705) is beyond float32; NaN stays.
    b = tl.where(b > 705.0, 705.0, tl.where(b < -705.0, -705.0, b))
    grown, shrunk = tl.exp(b), tl.exp(-b)
    z = b * b
    # Near 0 the difference of the exponentials would cancel.
    series = 1.6666666666666666e-1 + z * (8.333333333333333e-3 + z * (1.984126984126984e-4 + z * 2.7557319223985893e-6))
    sinh = tl.where(tl.abs(b) < 0.3, b + b * z * series, 0.5 * (grown - shrunk))
    real, imaginary = tl.sin(a) * (0.5 * (grown + shrunk)), tl.cos(a) * sinh
    tl.store(out_ptr + 2 * i, real.to(out_ptr.dtype.element_ty), mask=i < n)
    tl.store(out_ptr + 2 * i + 1, imaginary.to(out_ptr.dtype.element_ty), mask=i < n)


def _blocks(x):
    """Elements and warps of a program."""
    if not x.is_cuda:
        return 1 << 16, 4
    if x.numel() <= 1 << 17:
        return 256, 2
    return (2048 if x.element_size() <= 2 else 1024), 4


def sin(self):
    """A new tensor of the input's dtype, float32 for integers; in its memory order where that has no gaps."""
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.resolve_conj()
    out = torch.empty_like(x, dtype=dtype)
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
    n = out.numel()
    if n == 0:
        return out
    if x.is_complex():
        block = 256 if x.is_cuda else 1 << 16
        _sin_complex[(triton.cdiv(n, block),)](torch.view_as_real(x), torch.view_as_real(out), n, BLOCK=block)
        return out
    # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    block, warps = _blocks(x)
    wide = tl.float64 if x.dtype == torch.float64 else tl.float32
    _sin_real[(triton.cdiv(n, block),)](x, out, n, BLOCK=block, EVEN=n % block == 0, WIDE=wide, num_warps=warps)
    return out
