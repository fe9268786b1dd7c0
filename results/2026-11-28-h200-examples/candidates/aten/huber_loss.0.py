"""huber_loss: the losses and their sum in one pass over both tensors, the blocks' sums in a second; float32 inside."""

import torch
import triton
import triton.language as tl

MEAN, TOTAL = 1, 2


@triton.jit
def _loss(a, b, delta, WIDE: tl.constexpr):
    if tl.float64 == WIDE:
        delta = tl.load(delta)
    distance = tl.abs(a - b)
    return tl.where(distance <= delta, 0.5 * distance * distance, delta * (distance - 0.5 * delta))


@triton.jit
def _losses(a_ptr, b_ptr, out_ptr, n, delta, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(a_ptr + i, mask=inside).to(WIDE)
    b = tl.load(b_ptr + i, mask=inside).to(WIDE)
    tl.store(out_ptr + i, _loss(a, b, delta, WIDE).to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _partial_sums(a_ptr, b_ptr, out_ptr, n, delta, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    """Each program walks over the blocks with the stride of the grid, and leaves one sum."""
    total = tl.zeros((BLOCK,), WIDE)
    for first in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK):
        i = first + tl.arange(0, BLOCK).to(tl.int64)
        inside = i < n
        a = tl.load(a_ptr + i, mask=inside, other=0.0).to(WIDE)
        b = tl.load(b_ptr + i, mask=inside, other=0.0).to(WIDE)
        total += _loss(a, b, delta, WIDE)
    tl.store(out_ptr + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def _total(partial_ptr, out_ptr, count, divisor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(partial_ptr + i, mask=i < count, other=0.0), axis=0)
    tl.store(out_ptr, (total / divisor).to(out_ptr.dtype.element_ty))


def huber_loss(self, target, reduction=1, delta=1.0):
    """Every element's loss (``reduction`` 0), their mean (1) or their sum (2)."""
    a, b = (each.contiguous() for each in torch.broadcast_tensors(self, target))
    out = torch.empty(() if reduction in (MEAN, TOTAL) else a.shape, dtype=self.dtype, device=self.device)
    n = a.numel()
    wide = tl.float64 if self.dtype == torch.float64 else tl.float32
    if wide == tl.float64:
        # As a number a kernel would take it in float32.
        delta = torch.full((), delta, dtype=torch.float64, device=self.device)
    block = 2048 if a.is_cuda else 1 << 16
    if out.ndim or reduction not in (MEAN, TOTAL):
        if n:
            _losses[(triton.cdiv(n, block),)](a, b, out, n, delta, BLOCK=block, WIDE=wide)
        return out
    if n == 0:
        return out.fill_(float("nan") if reduction == MEAN else 0.0)
    programs = min(triton.cdiv(n, block), 1024)
    partial = torch.empty(programs, dtype=torch.float64 if wide == tl.float64 else torch.float32, device=a.device)
    _partial_sums[(programs,)](a, b, partial, n, delta, BLOCK=block, WIDE=wide, num_warps=8)
    _total[(1,)](partial, out, programs, n if reduction == MEAN else 1, BLOCK=triton.next_power_of_2(programs))
    return out


def huber_loss_out(self, target, reduction=1, delta=1.0, *, out):
    """The same into ``out``, of any strides, which is returned."""
    return out.copy_(huber_loss(self, target, reduction, delta))
