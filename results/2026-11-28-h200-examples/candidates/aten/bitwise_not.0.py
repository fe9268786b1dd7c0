"""bitwise_not: exclusive or with -1, of bool with 1; numbers of 1 and 2 bytes are read four bytes at a time."""

import torch
import triton
import triton.language as tl

_SIGNED = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def _flip(x_ptr, out_ptr, n, BITS: tl.constexpr, BLOCK: tl.constexpr):
    """Both lie in the same order without gaps."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=inside) ^ BITS, mask=inside)


@triton.jit
def _flip_strided(x_ptr, out_ptr, n, sizes, strides, DIMS: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    """An input of any strides, 0 where a dimension is expanded; the result is contiguous."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    rest = i
    at = tl.zeros((BLOCK,), tl.int64)
    for back in tl.static_range(DIMS):
        at += rest % sizes[DIMS - 1 - back] * strides[DIMS - 1 - back]
        rest = rest // sizes[DIMS - 1 - back]
    tl.store(out_ptr + i, tl.load(x_ptr + at, mask=inside) ^ BITS, mask=inside)


def bitwise_not(self):
    """A new contiguous tensor; of bool each byte becomes the other one of 0 and 1."""
    out = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    n, size = out.numel(), out.element_size()
    if n == 0:
        return out
    x, y = self.view(_SIGNED[size]), out.view(_SIGNED[size])
    truth = self.dtype == torch.bool
    bits = 1 if truth else -1
    if not x.is_contiguous():
        block = 1024 if x.is_cuda else 1 << 16
        _flip_strided[(triton.cdiv(n, block),)](
            x, y, n, tuple(x.shape), x.stride(), DIMS=x.ndim, BITS=bits, BLOCK=block
        )  # fmt: skip
        return out
    if size < 4 and n * size % 4 == 0 and x.data_ptr() % 4 == 0 and x.storage_offset() * size % 4 == 0:
        x, y = x.view(-1).view(torch.int32), y.view(-1).view(torch.int32)
        n, bits = x.numel(), 0x01010101 if truth else -1
    block = (1024 if x.element_size() >= 4 else 4096) if x.is_cuda else 1 << 16
    _flip[(triton.cdiv(n, block),)](x, y, n, BITS=bits, BLOCK=block)
    return out
