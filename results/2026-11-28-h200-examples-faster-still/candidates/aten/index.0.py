"""index.Tensor: programs add up where a tile of indices leads, and move what lies there along the other dimensions.

Masks first become indices: true elements are counted block by block, the counts summed, and places written. Elements
move as integers of their size.
"""

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@triton.jit
def _count(mask_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = tl.load(mask_ptr + i, mask=i < n, other=0)
    tl.store(out_ptr + tl.program_id(0), tl.sum((mask != 0).to(tl.int64), axis=0))


@triton.jit
def _scan(counts_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Sums of the counts before each block, and after them of all."""
    before = tl.zeros((1,), tl.int64)
    for first in range(0, n, BLOCK):
        i = first + tl.arange(0, BLOCK)
        count = tl.load(counts_ptr + i, mask=i < n, other=0)
        tl.store(out_ptr + i, before + tl.cumsum(count, axis=0) - count, mask=i < n)
        before += tl.sum(count, axis=0)
    tl.store(out_ptr + n + tl.arange(0, 1), before)


@triton.jit
def _found(mask_ptr, before_ptr, out_ptr, n, step, size, BLOCK: tl.constexpr):
    """Where the mask is true, as an index of its dimension of this size, whose elements are ``step`` apart."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    hit = tl.load(mask_ptr + i, mask=i < n, other=0) != 0
    place = tl.load(before_ptr + tl.program_id(0)) + tl.cumsum(hit.to(tl.int32), axis=0) - 1
    tl.store(out_ptr + place, i // step % size, mask=hit)


@triton.jit
def _offsets(indices, i, inside, shape, index_steps, sizes, steps, COUNT: tl.constexpr, DIMS: tl.constexpr):
    """Where the i-th group of indices leads; negative ones count from the end. ``shape``: the indices', last first."""
    offset = i * 0
    for k in tl.static_range(COUNT):
        at, rest = i * 0, i
        for d in tl.static_range(DIMS):
            # The first dimension is what is left.
            at += (rest % shape[d] if d < DIMS - 1 else rest) * index_steps[k * DIMS + d]
            rest = rest // shape[d] if d < DIMS - 1 else rest
        index = tl.load(indices[k] + at, mask=inside, other=0).to(tl.int64)
        offset += tl.where(index < 0, index + sizes[k], index) * steps[k]
    return offset


@triton.jit
def _points(
    x_ptr, out_ptr, indices, shape, index_steps, sizes, steps, n, before, before_step, blocks,
    COUNT: tl.constexpr, DIMS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """No dimension follows those indexed: out (before, n). Offsets serve ROWS rows."""
    i = (tl.program_id(0) % blocks).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    first = (tl.program_id(0) // blocks).to(tl.int64) * ROWS
    offset = _offsets(indices, i, i < n, shape, index_steps, sizes, steps, COUNT, DIMS)
    for more in tl.static_range(ROWS):
        row = first + more
        inside = (i < n) & (row < before)
        x = tl.load(x_ptr + row * before_step + offset, mask=inside)
        tl.store(out_ptr + row * n + i, x, mask=inside)


@triton.jit
def _slabs(
    x_ptr, out_ptr, indices, shape, index_steps, sizes, steps, n, before_step, after, after_step, blocks, across,
    COUNT: tl.constexpr, DIMS: tl.constexpr, GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """out (before, n, after)."""
    pid = tl.program_id(0).to(tl.int64)
    row = pid // across // blocks
    i = (pid // across % blocks * GROUPS + tl.arange(0, GROUPS))[:, None]
    column = (pid % across * BLOCK + tl.arange(0, BLOCK))[None, :]
    offset = _offsets(indices, i, i < n, shape, index_steps, sizes, steps, COUNT, DIMS)
    inside = (i < n) & (column < after)
    x = tl.load(x_ptr + row * before_step + offset + column * after_step, mask=inside)
    tl.store(out_ptr + (row * n + i) * after + column, x, mask=inside)


def _indices_of(mask):
    """One int64 tensor for each dimension of ``mask``: where it is true, in row-major order."""
    n, device = mask.numel(), mask.device
    if n == 0:
        return [torch.empty(0, dtype=torch.int64, device=device) for _ in mask.shape]
    mask = mask.contiguous().view(torch.uint8)
    block = 1024 if mask.is_cuda else 1 << 14
    blocks = triton.cdiv(n, block)
    counts = torch.empty(blocks, dtype=torch.int64, device=device)
    before = torch.empty(blocks + 1, dtype=torch.int64, device=device)
    _count[(blocks,)](mask, counts, n, BLOCK=block)
    _scan[(1,)](counts, before, blocks, BLOCK=1024)
    # The result's shape depends on it.
    total = before[blocks].item()
    found = [torch.empty(total, dtype=torch.int64, device=device) for _ in mask.shape]
    step = n
    for out, size in zip(found, mask.shape, strict=True):
        step //= size
        if total:
            _found[(blocks,)](mask, before, out, n, step, size, BLOCK=block)
    return found


def _line(shape, strides):
    """The stride of these dimensions counted through as one, 0 for one element, or None where they have none."""
    step, span = None, 1
    for size, stride in list(zip(shape, strides, strict=True))[::-1]:
        if size != 1:
            step = stride if step is None else step
            if stride != step * span:
                return None
            span *= size
    return step or 0


def _merged(shape, strides):
    """Dimensions of tensors with these strides, last first; neighbours that all count through as one are one.

    Returns sizes, and strides of each tensor.
    """
    sizes, steps = [], [[] for _ in strides]
    for dim in reversed(range(len(shape))):
        own = [each[dim] for each in strides]
        if shape[dim] == 1:
            continue
        if sizes and all(each == step[-1] * sizes[-1] for each, step in zip(own, steps, strict=True)):
            sizes[-1] *= shape[dim]
            continue
        sizes.append(shape[dim])
        for each, step in zip(own, steps, strict=True):
            step.append(each)
    return sizes or [1], [each or [0] for each in steps]


def _taken(x, out, indices, before, where, after):
    """``x`` by its dimensions ``before``, ``where`` (which are indexed) and ``after``, in this order, into ``out``."""
    x = x.permute(before + where + after)
    first, last = len(before), len(before) + len(where)
    if None in (_line(x.shape[:first], x.stride()[:first]), _line(x.shape[last:], x.stride()[last:])):
        x = x.contiguous()
    before_step, after_step = _line(x.shape[:first], x.stride()[:first]), _line(x.shape[last:], x.stride()[last:])
    shape = torch.broadcast_shapes(*(each.shape for each in indices))
    indices = [each.expand(shape) for each in indices]
    dims, index_steps = _merged(shape, [each.stride() for each in indices])
    n, lines, width = shape.numel(), x.shape[:first].numel(), x.shape[last:].numel()
    same = _SAME_SIZE[x.element_size()]
    operands = (
        x.view(same), out.view(same), tuple(indices), tuple(dims), tuple(step for each in index_steps for step in each),
        tuple(x.shape[first:last]), tuple(x.stride()[first:last]), n,
    )  # fmt: skip
    if width == 1:
        block = 512 if lines < 8 else min(1024, max(64, triton.next_power_of_2(n)))
        block = (128 if n * lines <= 1 << 16 else block) if x.is_cuda else 1 << 14
        rows, blocks = min(8, triton.next_power_of_2(lines)), triton.cdiv(n, block)
        _points[(blocks * triton.cdiv(lines, rows),)](
            *operands, lines, before_step, blocks, COUNT=len(where), DIMS=len(dims), ROWS=rows, BLOCK=block
        )  # fmt: skip
        return
    total = (1024 if out.numel() <= 1 << 18 else 8192 // max(2, min(4, x.element_size()))) if x.is_cuda else 1 << 16
    block = min(triton.next_power_of_2(width), total)
    groups = min(max(1, total // block), triton.next_power_of_2(n))
    blocks, across = triton.cdiv(n, groups), triton.cdiv(width, block)
    _slabs[(lines * blocks * across,)](
        *operands, before_step, width, after_step, blocks, across,
        COUNT=len(where), DIMS=len(dims), GROUPS=groups, BLOCK=block,
    )  # fmt: skip


def index_Tensor(self, indices):
    """self[indices], row-major: integers, or masks in place of as many dimensions as they have; None for all."""
    x = self.resolve_conj()
    if x.dtype == torch.complex128:
        # No integer is as large; the parts are one more dimension.
        return torch.view_as_complex(index_Tensor(torch.view_as_real(x), indices))
    found = []
    for each in indices:
        mask = each is not None and each.dtype in (torch.bool, torch.uint8)
        found += _indices_of(each) if mask else [each]
    found += [None] * (x.ndim - len(found))
    where = [dim for dim, each in enumerate(found) if each is not None]
    if not where:
        return x.clone(memory_format=torch.contiguous_format)
    tensors = [found[dim] for dim in where]
    others = [dim for dim in range(x.ndim) if dim not in where]
    # Where the indexed dimensions are not neighbours, those of the indices come first.
    neighbours = where[-1] - where[0] + 1 == len(where)
    before = [dim for dim in others if neighbours and dim < where[0]]
    after = [dim for dim in others if dim not in before]
    shape = torch.broadcast_shapes(*(each.shape for each in tensors))
    out = torch.empty(
        (*(x.shape[dim] for dim in before), *shape, *(x.shape[dim] for dim in after)), dtype=x.dtype, device=x.device
    )  # fmt: skip
    if out.numel():
        _taken(x, out, tensors, before, where, after)
    return out
