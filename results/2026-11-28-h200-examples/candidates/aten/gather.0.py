"""gather: each program finds where a block of results comes from, and moves it.

Strides of both tensors are taken as they are, so nothing is copied first. Values move as integers of their size.
"""

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def _gather(
    x_ptr, index_ptr, out_ptr, n, step, sizes, x_strides, index_strides, DIMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """out is row-major in the shape of the index; ``step``: x's stride along the dimension, in x_strides 0."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    rest = i
    x_at = tl.zeros((BLOCK,), tl.int64)
    index_at = tl.zeros((BLOCK,), tl.int64)
    for back in tl.static_range(DIMS):
        place = rest % sizes[DIMS - 1 - back]
        rest = rest // sizes[DIMS - 1 - back]
        x_at += place * x_strides[DIMS - 1 - back]
        index_at += place * index_strides[DIMS - 1 - back]
    chosen = tl.load(index_ptr + index_at, mask=inside, other=0).to(tl.int64)
    tl.store(out_ptr + i, tl.load(x_ptr + x_at + chosen * step, mask=inside), mask=inside)


def gather(self, dim, index, *, sparse_grad=False):
    """self[..., index[..., j, ...], ...] along ``dim``, in the shape of ``index``; row-major."""
    out = torch.empty(index.shape, dtype=self.dtype, device=self.device)
    if out.numel() == 0:
        return out
    # A tensor without dimensions counts as one of one element.
    x = self.reshape(1) if self.ndim == 0 else self
    at = index.reshape(1) if index.ndim == 0 else index
    dim %= x.ndim
    x_strides = tuple(0 if each == dim else step for each, step in enumerate(x.stride()))
    plain = _SAME_SIZE[x.element_size()]
    block = 1024 if x.is_cuda else 1 << 16
    _gather[(triton.cdiv(out.numel(), block),)](
        x.view(plain), at, out.view(plain), out.numel(), x.stride(dim), tuple(at.shape), x_strides, at.stride(),
        DIMS=at.ndim, BLOCK=block,
    )  # fmt: skip
    return out
