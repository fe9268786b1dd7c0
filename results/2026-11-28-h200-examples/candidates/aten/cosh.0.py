"""cosh: (exp(x) + exp(-x)) / 2, for floating and complex numbers.

Numbers are float32 inside (float64 for float64 and complex numbers), rounded once when stored. Memory without gaps is
read as it lies, whatever the order of its dimensions; anything else is copied first.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _cosh_real(x_ptr, out_ptr, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """Both lie in the same order without gaps."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.abs(tl.load(x_ptr + i, mask=i < n, other=0).to(WIDE))
    y = 0.5 * tl.exp(x) + 0.5 * tl.exp(-x)
    if tl.float64 == WIDE:
        # exp(x) overflows before cosh(x) does.
        root = tl.exp(0.5 * x)
        y = tl.where(x > 709.0, 0.5 * root * root, y)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=i < n)


@triton.jit
def _cosh_complex(z_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Pairs (a, b): cosh(a) cos(b) + i sinh(a) sin(b). What exceeds the result's range becomes inf when stored."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(z_ptr + 2 * i, mask=i < n, other=0.0).to(tl.float64)
    b = tl.load(z_ptr + 2 * i + 1, mask=i < n, other=0.0).to(tl.float64)
    no_angle = (tl.abs(b) == float("inf")) | (b != b)
    angle = tl.where(no_angle, 0.0, b)
    cosine = tl.where(no_angle, float("nan"), tl.cos(angle))
    sine = tl.where(no_angle, float("nan"), tl.sin(angle))
    size = tl.where(tl.abs(a) > 700.0, 700.0, tl.abs(a))
    grown, shrunk = 0.5 * tl.exp(size), 0.5 * tl.exp(-size)
    # Near 0 the difference of the exponentials would cancel.
    q = size * size
    series = 1.0 + q * (
        0.16666666666666666 + q * (0.008333333333333333 + q * (
            0.0001984126984126984 + q * (2.7557319223985893e-06 + q * 2.505210838544172e-08)
        ))
    )  # fmt: skip
    sinh = tl.where(size < 0.25, size * series, grown - shrunk)
    real = (grown + shrunk) * cosine
    imaginary = tl.where(a < 0.0, -sinh, sinh) * sine
    # C99: what an infinity or 0 meets without an angle, and angles of 0.
    real = tl.where((tl.abs(a) == float("inf")) & no_angle, float("inf"), real)
    imaginary = tl.where((a == 0.0) & no_angle, 0.0, imaginary)
    imaginary = tl.where(b == 0.0, tl.where(a != a, b, imaginary), imaginary)
    tl.store(out_ptr + 2 * i, real.to(out_ptr.dtype.element_ty), mask=i < n)
    tl.store(out_ptr + 2 * i + 1, imaginary.to(out_ptr.dtype.element_ty), mask=i < n)


def _fill(out, x):
    """``out`` and ``x`` lie in the same order without gaps."""
    n = out.numel()
    if n == 0:
        return out
    if x.is_complex():
        block = 256 if x.is_cuda else 1 << 16
        _cosh_complex[(triton.cdiv(n, block),)](torch.view_as_real(x), torch.view_as_real(out), n, BLOCK=block)
        return out
    # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    block = (256 if n <= 1 << 19 else 4096 // x.element_size()) if x.is_cuda else 1 << 16
    wide = tl.float64 if x.dtype == torch.float64 else tl.float32
    _cosh_real[(triton.cdiv(n, block),)](x, out, n, BLOCK=block, WIDE=wide)
    return out


def cosh(self):
    """A new tensor of the input's dtype, float32 for integers; in its memory order where that has no gaps."""
    dtype = self.dtype if self.is_floating_point() or self.is_complex() else torch.float32
    x = self.resolve_conj()
    out = torch.empty_like(x, dtype=dtype)
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
    return _fill(out, x)


def cosh_out(self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if out.is_contiguous():
        return _fill(out, self.resolve_conj().contiguous())
    return out.copy_(cosh(self))
