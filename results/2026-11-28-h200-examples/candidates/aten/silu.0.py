"""silu: x / (1 + exp(-x)), for floating and complex numbers.

Numbers are float32 inside (float64 for float64), rounded once when stored. Memory without gaps is read as it lies,
whatever the order of its dimensions; anything else by its strides.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _silu(x, WIDE: tl.constexpr):
    wide = x.to(WIDE)
    # Where the exponential overflows, x / inf is the right zero.
    return wide / (1.0 + tl.exp(-wide))


@triton.jit
def _silu_dense(x_ptr, out_ptr, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """Both lie in the same order without gaps."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    y = _silu(tl.load(x_ptr + i, mask=inside), WIDE)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _silu_strided(x_ptr, out_ptr, n, sizes, strides, DIMS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """An input of any strides, 0 where a dimension is expanded; the result is contiguous."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    rest = i
    at = tl.zeros((BLOCK,), tl.int64)
    for back in tl.static_range(DIMS):
        at += rest % sizes[DIMS - 1 - back] * strides[DIMS - 1 - back]
        rest = rest // sizes[DIMS - 1 - back]
    y = _silu(tl.load(x_ptr + at, mask=inside), WIDE)
    tl.store(out_ptr + i, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _silu_complex(z_ptr, out_ptr, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """Pairs (a, b): (a + ib) / (1 + exp(-a) (cos b - i sin b)), for negative a with both times exp(a)."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(z_ptr + 2 * i, mask=inside).to(WIDE)
    b = tl.load(z_ptr + 2 * i + 1, mask=inside).to(WIDE)
    e = tl.exp(-tl.abs(a))
    below = a < 0
    c = tl.where(below, e + tl.cos(b), 1.0 + e * tl.cos(b))
    d = tl.where(below, -tl.sin(b), -e * tl.sin(b))
    size = c * c + d * d
    a, b = tl.where(below, a * e, a), tl.where(below, b * e, b)
    tl.store(out_ptr + 2 * i, (a * c + b * d) / size, mask=inside)
    tl.store(out_ptr + 2 * i + 1, (b * c - a * d) / size, mask=inside)


def silu(self):
    """A new tensor of the input's shape and dtype, in its memory order where that has no gaps."""
    wide = tl.float64 if self.dtype in (torch.float64, torch.complex128) else tl.float32
    block = 1024 if self.is_cuda else 1 << 16
    if self.is_complex():
        z = self.resolve_conj().contiguous()
        out = torch.empty_like(z)
        if z.numel():
            pairs, results = torch.view_as_real(z), torch.view_as_real(out)
            _silu_complex[(triton.cdiv(z.numel(), block),)](pairs, results, z.numel(), block, wide)
        return out
    n = self.numel()
    out = torch.empty_like(self)
    if n == 0:
        return out
    grid = (triton.cdiv(n, block),)
    if out.stride() == self.stride():
        _silu_dense[grid](self, out, n, block, wide)
    else:
        out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
        _silu_strided[grid](self, out, n, tuple(self.shape), self.stride(), self.ndim, block, wide)
    return out
