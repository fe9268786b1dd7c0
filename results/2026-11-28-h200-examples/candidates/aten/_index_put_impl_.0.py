"""_index_put_impl_: values to, or added at, the places that groups of indices name.

One mask with values that are the same at all its places is a masked fill. Other masks first become indices: true
elements are counted block by block, the counts summed, and places written. Sums are atomic; those of 16 bits are made
in float32 beside the tensor and rounded once. Values that are only moved go as integers of their size.
"""

import math

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
def _place(i, sizes, strides, DIMS: tl.constexpr):
    """Where elements lie that ``i`` counts through, the last dimension fastest."""
    at = i * 0
    for back in tl.static_range(1, DIMS):
        at += i % sizes[DIMS - back] * strides[DIMS - back]
        i = i // sizes[DIMS - back]
    return at + i * strides[0]


@triton.jit
def _fill(
    mask_ptr, values_ptr, x_ptr, n, sizes, mask_strides, value_strides, x_strides,
    DIMS: tl.constexpr, MASKED: tl.constexpr, ADD: tl.constexpr, BOOL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Strides of 0 where mask or values have no dimension."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    if MASKED:
        inside = inside & (tl.load(mask_ptr + _place(i, sizes, mask_strides, DIMS), mask=inside, other=0) != 0)
    at = x_ptr + _place(i, sizes, x_strides, DIMS)
    value = tl.load(values_ptr + _place(i, sizes, value_strides, DIMS), mask=inside, other=0)
    if ADD:
        x = tl.load(at, mask=inside, other=0)
        if BOOL:
            value = x | value
        elif x.dtype.is_floating() and x.dtype != tl.float64:
            value = x.to(tl.float32) + value.to(tl.float32)
        else:
            value = x + value
    tl.store(at, value.to(x_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _scatter(
    x_ptr, values_ptr, sums_ptr, indices, index_sizes, index_steps, n, width, value_step, across,
    sizes, value_strides, x_strides,
    COUNT: tl.constexpr, DIMS: tl.constexpr, MODE: tl.constexpr, GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """GROUPS of indices, each for a slab of ``width`` elements. Float32 sums lie as x does."""
    group = ((tl.program_id(0) // across).to(tl.int64) * GROUPS + tl.arange(0, GROUPS))[:, None]
    column = ((tl.program_id(0) % across).to(tl.int64) * BLOCK + tl.arange(0, BLOCK))[None, :]
    inside = (group < n) & (column < width)
    at = group * 0
    for k in tl.static_range(COUNT):
        index = tl.load(indices[k] + group, mask=group < n, other=0)
        at += tl.where(index < 0, index + index_sizes[k], index) * index_steps[k]
    at += _place(column, sizes, x_strides, DIMS)
    value_at = group * value_step + _place(column, sizes, value_strides, DIMS)
    if MODE == "put":
        tl.store(x_ptr + at, tl.load(values_ptr + value_at, mask=inside, other=0), mask=inside)
    elif MODE == "add":
        value = tl.load(values_ptr + value_at, mask=inside, other=0)
        tl.atomic_add(x_ptr + at, value, mask=inside, sem="relaxed")
    elif MODE == "or":
        value = tl.load(values_ptr + value_at, mask=inside, other=0)
        tl.store(x_ptr + at, value, mask=inside & (value != 0))
    elif MODE == "widen":
        tl.store(sums_ptr + at, tl.load(x_ptr + at, mask=inside, other=0).to(tl.float32), mask=inside)
    elif MODE == "add to sums":
        value = tl.load(values_ptr + value_at, mask=inside, other=0).to(tl.float32)
        tl.atomic_add(sums_ptr + at, value, mask=inside, sem="relaxed")
    else:
        sums = tl.load(sums_ptr + at, mask=inside, other=0)
        tl.store(x_ptr + at, sums.to(x_ptr.dtype.element_ty), mask=inside)


def _merged(shape, *strides):
    """Sizes and strides in the order of the last operand's memory, neighbours merged where every operand allows it."""
    dims = [dim for dim in zip(shape, *strides, strict=True) if dim[0] != 1] or [(1,) * (1 + len(strides))]
    dims.sort(key=lambda dim: -dim[-1])
    merged = dims[:1]
    for size, *steps in dims[1:]:
        if all(outer == size * step for outer, step in zip(merged[-1][1:], steps, strict=True)):
            merged[-1] = (merged[-1][0] * size, *steps)
        else:
            merged.append((size, *steps))
    return tuple(zip(*merged, strict=True))


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


def _masked(x, mask, dim, values, accumulate):
    """``mask`` (or None) over dimensions from ``dim`` on; ``values`` do not depend on the place in it."""
    masked = 0 if mask is None else mask.ndim
    shape = (*x.shape[:dim], *([1] if masked else []), *x.shape[dim + masked :])
    while values.ndim > len(shape):
        values = values[0]
    steps = values.expand(shape).stride()
    value_strides = [*steps[:dim], *[0] * masked, *steps[dim + (1 if masked else 0) :]]
    mask_strides = [0] * x.ndim
    if masked:
        mask_strides[dim : dim + masked] = mask.stride()
        mask = mask.view(torch.uint8)
    pair, truth = accumulate and x.is_complex(), x.dtype == torch.bool
    if pair:
        x, values = torch.view_as_real(x), torch.view_as_real(values)
        value_strides, mask_strides = [2 * each for each in value_strides] + [1], [*mask_strides, 0]
    elif not accumulate or truth:
        x, values = (each.view(_SAME_SIZE[each.element_size()]) for each in (x, values))
    sizes, *strides = _merged(x.shape, mask_strides, value_strides, x.stride())
    n, block = x.numel(), 1024 if x.is_cuda else 1 << 16
    _fill[(triton.cdiv(n, block),)](
        mask if masked else x, values, x, n, sizes, *strides,
        DIMS=len(sizes), MASKED=masked > 0, ADD=accumulate, BOOL=truth, BLOCK=block,
    )  # fmt: skip


def _scattered(x, indices, values, before, where, after, accumulate):
    """Int64 ``indices`` of one shape for the dimensions ``where``; ``before`` and ``after`` are those not indexed."""
    shape = indices[0].shape
    full = (*(x.shape[dim] for dim in before), *shape, *(x.shape[dim] for dim in after))
    while values.ndim > len(full):
        values = values[0]
    values = values.expand(full)
    first, last = len(before), len(before) + len(shape)
    if _line(shape, values.stride()[first:last]) is None:
        values = values.contiguous()
    steps = [values.stride(each) for each in (*range(first), *range(last, len(full)))]
    sizes = [x.shape[dim] for dim in before + after]
    strides = [x.stride(dim) for dim in before + after]
    value_step, index_steps = _line(shape, values.stride()[first:last]), [x.stride(dim) for dim in where]
    modes, index_sizes = ["put"], tuple(x.shape[dim] for dim in where)
    if accumulate:
        narrow = x.dtype in (torch.float16, torch.bfloat16)
        modes = ["widen", "add to sums", "narrow"] if narrow else ["or"] if x.dtype == torch.bool else ["add"]
    if accumulate and x.is_complex():
        x, values = torch.view_as_real(x), torch.view_as_real(values)
        steps, strides, index_steps = ([2 * each for each in some] for some in (steps, strides, index_steps))
        sizes, steps, strides, value_step = [*sizes, 2], [*steps, 1], [*strides, 1], 2 * value_step
    elif modes[0] in ("put", "or"):
        x, values = (each.view(_SAME_SIZE[each.element_size()]) for each in (x, values))
    sums = x
    if modes[0] == "widen":
        span = sum((size - 1) * step for size, step in zip(x.shape, x.stride(), strict=True)) + 1
        sums = torch.empty(span, dtype=torch.float32, device=x.device)
    sizes, steps, strides = _merged(sizes, steps, strides)
    n, width = shape.numel(), math.prod(sizes)
    tile = 2048 if x.is_cuda else 1 << 16
    block = min(tile if x.element_size() <= 2 else max(1024, tile // 2), triton.next_power_of_2(width))
    groups = min(triton.next_power_of_2(n), tile // block)
    across = triton.cdiv(width, block)
    for mode in modes:
        _scatter[(triton.cdiv(n, groups) * across,)](
            x, values, sums, tuple(indices), index_sizes, tuple(index_steps), n, width, value_step, across,
            sizes, steps, strides, COUNT=len(where), DIMS=len(sizes), MODE=mode, GROUPS=groups, BLOCK=block,
        )  # fmt: skip


def _index_put_impl_(self, indices, values, accumulate=False, unsafe=False):
    """``self``; an index is a tensor of integers, a mask in place of as many dimensions as it has, or None for all."""
    if self.numel() == 0 or values.numel() == 0:
        return self
    values = values.resolve_conj()
    masks = [(dim, each) for dim, each in _placed(indices) if each.dtype in (torch.bool, torch.uint8)]
    tensors = [each for each in indices if each is not None]
    if not tensors:
        _masked(self, None, 0, values, accumulate)
        return self
    if len(tensors) == len(masks) == 1:
        dim, mask = masks[0]
        back = self.ndim - dim - mask.ndim
        if values.ndim <= back or values.shape[values.ndim - 1 - back] == 1:
            _masked(self, mask, dim, values, accumulate)
            return self
    found = []
    for each in indices:
        mask = each is not None and each.dtype in (torch.bool, torch.uint8)
        found += _indices_of(each) if mask else [each]
    where = [dim for dim, each in enumerate(found) if each is not None]
    shape = torch.broadcast_shapes(*(found[dim].shape for dim in where))
    others = [dim for dim in range(self.ndim) if dim not in where]
    # Where the indexed dimensions are not neighbours, those of the indices come first.
    neighbours = where[-1] - where[0] + 1 == len(where)
    before = [dim for dim in others if neighbours and dim < where[0]]
    after = [dim for dim in others if dim not in before]
    chosen = [found[dim].to(torch.int64).expand(shape).contiguous() for dim in where]
    if shape.numel():
        _scattered(self, chosen, values, before, where, after, accumulate)
    return self


def _placed(indices):
    """Those that are tensors, with the first of the dimensions that each stands for."""
    placed, dim = [], 0
    for each in indices:
        if each is not None:
            placed.append((dim, each))
        dim += each.ndim if each is not None and each.dtype in (torch.bool, torch.uint8) else 1
    return placed
