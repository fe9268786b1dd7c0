"""i0: the modified Bessel function of order 0: its power series up to 8, Cephes' Chebyshev series beyond.

Numbers are float32 inside (float64 for float64), rounded once when stored. Memory without gaps is read as it lies,
whatever the order of its dimensions; anything else is copied first.
"""

import math

import torch
import triton
import triton.language as tl

_SERIES_32 = tl.constexpr(tuple(1.0 / math.factorial(k) ** 2 for k in range(17, -1, -1)))
_SERIES_64 = tl.constexpr(tuple(1.0 / math.factorial(k) ** 2 for k in range(26, -1, -1)))
_LARGE_32 = tl.constexpr((
    3.39623202570838634515e-9, 2.26666899049817806459e-8, 2.04891858946906374183e-7, 2.89137052083475648297e-6,
    6.88975834691682398426e-5, 3.36911647825569408990e-3, 8.04490411014108831608e-1,
))  # fmt: skip
_LARGE_64 = tl.constexpr((
    -7.23318048787475395456e-18, -4.83050448594418207126e-18, 4.46562142029675999901e-17, 3.46122286769746109310e-17,
    -2.82762398051658348494e-16, -3.42548561967721913462e-16, 1.77256013305652638360e-15, 3.81168066935262242075e-15,
    -9.55484669882830764870e-15, -4.15056934728722208663e-14, 1.54008621752140982691e-14, 3.85277838274214270114e-13,
    7.18012445138366623367e-13, -1.79417853150680611778e-12, -1.32158118404477131188e-11, -3.14991652796324136454e-11,
    1.18891471078464383424e-11, 4.94060238822496958910e-10, 3.39623202570838634515e-9, 2.26666899049817806459e-8,
    2.04891858946906374183e-7, 2.89137052083475648297e-6, 6.88975834691682398426e-5, 3.36911647825569408990e-3,
    8.04490411014108831608e-1,
))  # fmt: skip


@triton.jit
def _polynomial(x, TERMS: tl.constexpr, COUNT: tl.constexpr):
    """By Horner's rule; the term of the highest power comes first."""
    y = tl.zeros_like(x) + TERMS[0]
    for k in tl.static_range(1, COUNT):
        y = y * x + TERMS[k]
    return y


@triton.jit
def _chebyshev(x, TERMS: tl.constexpr, COUNT: tl.constexpr):
    """By Clenshaw's rule, in x from -2 to 2; the term of the highest order comes first."""
    now = tl.zeros_like(x) + TERMS[0]
    before = tl.zeros_like(x)
    last = before
    for k in tl.static_range(1, COUNT):
        last = before
        before = now
        now = x * before - last + TERMS[k]
    return (now - last) * 0.5


@triton.jit
def _i0(x):
    size = tl.abs(x)
    t = size * size * 0.25
    y = _polynomial(t, _SERIES_64, 27) if x.dtype == tl.float64 else _polynomial(t, _SERIES_32, 18)
    # Most tiles have no element that needs the second series.
    if tl.max((size > 8.0).to(tl.int32)) > 0:
        z = tl.where(size > 8.0, size, 8.0)
        # From here on it overflows, but its parts must not.
        z = tl.where(z > 1000.0, 1000.0, z)
        if x.dtype == tl.float64:
            scaled = _chebyshev(32.0 / z - 2.0, _LARGE_64, 25) / tl.sqrt(z)
        else:
            scaled = _chebyshev(32.0 / z - 2.0, _LARGE_32, 7) / tl.sqrt_rn(z)
        root = tl.exp(z * 0.5)
        y = tl.where(size > 8.0, root * scaled * root, y)
    return y


@triton.jit
def _i0_dense(x_ptr, out_ptr, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """Both lie in the same order without gaps."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + i, _i0(x.to(WIDE)).to(out_ptr.dtype.element_ty), mask=i < n)


def _fill(out, x):
    """``out`` and ``x`` lie in the same order without gaps."""
    n = out.numel()
    if n == 0:
        return out
    # Triton has no pointers to bool; 0 and 1 as bytes are the same memory.
    x = x.view(torch.uint8) if x.dtype == torch.bool else x
    block = (512 if n <= 1 << 17 else 2048 if out.element_size() == 2 else 1024) if out.is_cuda else 1 << 16
    wide = tl.float64 if x.dtype == torch.float64 else tl.float32
    _i0_dense[(triton.cdiv(n, block),)](x, out, n, BLOCK=block, WIDE=wide, num_warps=4)
    return out


def i0(self):
    """A new tensor of the input's dtype, float32 for integers; in its memory order where that has no gaps."""
    dtype = self.dtype if self.is_floating_point() else torch.float32
    out, x = torch.empty_like(self, dtype=dtype), self
    if out.stride() != x.stride():
        x = x.contiguous()
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
    return _fill(out, x)


def i0_out(self, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if out.is_contiguous():
        return _fill(out, self.contiguous())
    return out.copy_(i0(self))
