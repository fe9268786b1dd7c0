"""cos: x = n pi + r with pi in three parts, then a polynomial in r * r; the sign is that of odd n.

Numbers are float32 inside (float64 for float64 and complex numbers), rounded once when stored. Memory without gaps is
read as it lies, whatever the order of its dimensions; anything else is copied first.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _cos(x, REDUCED: tl.constexpr):
    """float32. The products of n with the parts of pi are exact up to n = 2^15. REDUCED: no x is larger."""
    # 1.5 * 2^23: the sum has n in its lowest bits.
    shifted = x * 0.3183098861837907 + 12582912.0
    n = shifted - 12582912.0
    r = x - n * 3.140625
    r = r - n * 9.670257568359375e-4
    r = r - n * 6.278329573005e-7
    z = r * r
    y = 2.48015873015873e-5 + z * (-2.755731922398589e-7 + z * 2.08767569878681e-9)
    y = 1.0 + z * (-0.5 + z * (4.1666666666666664e-2 + z * (-1.3888888888888889e-3 + z * y)))
    odd = shifted.to(tl.int32, bitcast=True) << 31
    y = (y.to(tl.int32, bitcast=True) ^ odd).to(tl.float32, bitcast=True)
    if not REDUCED:
        size = tl.abs(x)
        # Few blocks have such numbers; the others need not compute cos twice.
        if tl.max(size) > 100000.0:
            y = tl.where(size > 100000.0, tl.cos(x), y)
    return y


@triton.jit
def _cos_real(x_ptr, out_ptr, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """Both lie in the same order without gaps."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    # Infinities of float16 give NaN by the subtractions.
    y = tl.cos(x.to(WIDE)) if tl.float64 == WIDE else _cos(x.to(WIDE), x.dtype == tl.float16)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def _cos_complex(z_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Pairs (a, b): cos(a) cosh(b) - i sin(a) sinh(b)."""
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
    real, imaginary = tl.cos(a) * (0.5 * (grown + shrunk)), -(tl.sin(a) * sinh)
    tl.store(out_ptr + 2 * i, real.to(out_ptr.dtype.element_ty), mask=i < n)
    tl.store(out_ptr + 2 * i + 1, imaginary.to(out_ptr.dtype.element_ty), mask=i < n)


def cos(self):
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
        _cos_complex[(triton.cdiv(n, block),)](torch.view_as_real(x), torch.view_as_real(out), n, BLOCK=block)
        return out
    # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    block = (256 if n <= 1 << 15 else 2048 if out.element_size() == 2 else 1024) if x.is_cuda else 1 << 16
    wide = tl.float64 if x.dtype == torch.float64 else tl.float32
    _cos_real[(triton.cdiv(n, block),)](x, out, n, BLOCK=block, WIDE=wide)
    return out
