"""huber_loss: every loss, or their sum or mean: programs take blocks in turn, and their sums are added in float64.

Few losses are added by one program. Numbers are float32 before that (float64 for float64). Operands are broadcast, and
copied where they are not row-major.
"""

import torch
import triton
import triton.language as tl

MEAN = 1


@triton.jit
def _loss(a_ptr, b_ptr, i, inside, delta, WIDE: tl.constexpr):
    """0 where not ``inside``, which may be None."""
    other = None if inside is None else 0.0
    a = tl.load(a_ptr + i, mask=inside, other=other).to(WIDE)
    b = tl.load(b_ptr + i, mask=inside, other=other).to(WIDE)
    delta = tl.full([1], delta, tl.float64).to(WIDE)
    distance = tl.abs(a - b)
    half = 0.5 * distance
    return tl.where(distance <= delta, half * distance, delta * (distance - 0.5 * delta))


@triton.jit
def _store(out_ptr, total, n, AVERAGE: tl.constexpr):
    total = total.to(tl.float64)
    if AVERAGE:
        total = total / n.to(tl.float64)
    if out_ptr.dtype.element_ty != tl.float64:
        total = total.to(tl.float32)
    tl.store(out_ptr, total.to(out_ptr.dtype.element_ty))


@triton.jit(do_not_specialize=["delta"])
def _losses(
    a_ptr, b_ptr, out_ptr, n, delta: tl.float64, BLOCK: tl.constexpr, EVEN: tl.constexpr, WIDE: tl.constexpr
):  # fmt: skip
    """EVEN: the blocks end with the tensor."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = None if EVEN else i < n
    loss = _loss(a_ptr, b_ptr, i, inside, delta, WIDE)
    tl.store(out_ptr + i, loss.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["n", "delta"])
def _sums(
    a_ptr, b_ptr, out_ptr, n, whole_blocks, blocks, delta: tl.float64,
    BLOCK: tl.constexpr, AVERAGE: tl.constexpr, LAST: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Each program walks over the blocks with the stride of the grid. LAST: there is one, and it has the result."""
    at = tl.arange(0, BLOCK).to(tl.int64)
    total = tl.zeros([BLOCK], WIDE)
    for block in range(tl.program_id(0), whole_blocks, tl.num_programs(0)):
        total += _loss(a_ptr, b_ptr, block.to(tl.int64) * BLOCK + at, None, delta, WIDE)
    for block in range(whole_blocks + tl.program_id(0), blocks, tl.num_programs(0)):
        i = block.to(tl.int64) * BLOCK + at
        total += _loss(a_ptr, b_ptr, i, i < n, delta, WIDE)
    if LAST:
        _store(out_ptr, tl.sum(total, axis=0), n, AVERAGE)
    else:
        tl.store(out_ptr + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit(do_not_specialize=["n"])
def _last_sum(sums_ptr, out_ptr, count, n, BLOCK: tl.constexpr, AVERAGE: tl.constexpr):
    i = tl.arange(0, BLOCK)
    sums = tl.load(sums_ptr + i, mask=i < count, other=0.0).to(tl.float64)
    _store(out_ptr, tl.sum(sums, axis=0), n, AVERAGE)


def _operands(a, b):
    wide = tl.float64 if a.dtype == torch.float64 else tl.float32
    return *(each.contiguous() for each in torch.broadcast_tensors(a, b)), wide


def _each(out, self, target, delta):
    """Every loss into ``out``, which is contiguous."""
    a, b, wide = _operands(self, target)
    n = out.numel()
    if n == 0:
        return out
    few, sixteen = n <= 1 << 18, out.element_size() == 2
    block = (256 if few else 2048 if sixteen else 1024) if out.is_cuda else 1 << 16
    _losses[(triton.cdiv(n, block),)](
        a, b, out, n, float(delta), BLOCK=block, EVEN=n % block == 0, WIDE=wide, num_warps=2 if few else 4
    )
    return out


def _blocks(n, sixteen):
    """Elements of a block, warps and programs."""
    if n <= 32768:
        return (1024, 4, 1) if n <= 1024 else (4096, 16, 1)
    block = 4096 if sixteen else 2048
    blocks = triton.cdiv(n, block)
    # 8 for each of 132 multiprocessors, and none that takes many more than a thousand blocks.
    return block, 8, min(blocks, max(1056, blocks // 1024))


def huber_loss(self, target, reduction=1, delta=1.0):
    """Every element's loss (``reduction`` 0), their mean (1) or their sum (2)."""
    if reduction == 0:
        shape = torch.broadcast_shapes(self.shape, target.shape)
        return _each(torch.empty(shape, dtype=self.dtype, device=self.device), self, target, delta)
    out = torch.empty((), dtype=self.dtype, device=self.device)
    a, b, wide = _operands(self, target)
    n, average = a.numel(), reduction == MEAN
    if n == 0:
        return out.fill_(float("nan") if average else 0.0)
    block, warps, programs = _blocks(n, out.element_size() == 2)
    sums = out
    if programs > 1:
        sums = torch.empty(programs, dtype=torch.float64 if wide == tl.float64 else torch.float32, device=out.device)
    _sums[(programs,)](
        a, b, sums, n, n // block, triton.cdiv(n, block), float(delta),
        BLOCK=block, AVERAGE=average, LAST=programs == 1, WIDE=wide, num_warps=warps,
    )  # fmt: skip
    if programs > 1:
        _last_sum[(1,)](
            sums, out, programs, n, BLOCK=triton.next_power_of_2(programs), AVERAGE=average, num_warps=4
        )  # fmt: skip
    return out


def huber_loss_out(self, target, reduction=1, delta=1.0, *, out):
    """The same into ``out``, of any strides, which is returned."""
    if reduction == 0 and out.is_contiguous():
        return _each(out, self, target, delta)
    return out.copy_(huber_loss(self, target, reduction, delta))
