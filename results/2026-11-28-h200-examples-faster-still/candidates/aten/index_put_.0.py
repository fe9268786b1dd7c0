"""index_put_: values to, or added at, the places that groups of indices name.

One mask with values that are the same at all its places is a masked fill. Other masks first become indices: true
elements are counted block by block, the counts summed, and places written. Sums of long slabs, and all those of
narrow numbers, are made by list: groups that name the same slab are linked, and the last of them adds up all. Other
sums are atomic. Values that are only moved go as integers of their size, complex numbers as pairs.
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
    DIMS: tl.constexpr, ONE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Strides of 0 where mask or values have no dimension; ONE value may stand for all."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = tl.load(mask_ptr + _place(i, sizes, mask_strides, DIMS), mask=i < n, other=0)
    if ONE:
        value = tl.load(values_ptr)
    else:
        value = tl.load(values_ptr + _place(i, sizes, value_strides, DIMS), mask=i < n, other=0)
    at = x_ptr + _place(i, sizes, x_strides, DIMS)
    # Elements that are not named are written back: one wide store in place of many short ones.
    tl.store(at, tl.where(mask != 0, value, tl.load(at, mask=i < n, other=0)), mask=i < n)


@triton.jit
def _index(index_ptr, group, size, inside, POLICY: tl.constexpr):
    index = tl.load(index_ptr + group, mask=inside, other=0, eviction_policy=POLICY)
    return tl.where(index < 0, index + size, index)


@triton.jit
def _scatter(
    x_ptr, values_ptr, indices, index_sizes, index_steps, n, width, value_step, across, sizes, value_strides, x_strides,
    COUNT: tl.constexpr, DIMS: tl.constexpr, ADD: tl.constexpr, GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """GROUPS of indices, each for a slab of ``width`` elements."""
    group = (tl.program_id(0) // across).to(tl.int64) * GROUPS + tl.arange(0, GROUPS)
    column = (tl.program_id(0) % across).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    # Single elements land anywhere in x, which may have the cache.
    POLICY: tl.constexpr = "evict_first" if BLOCK == 1 else ""
    at = group * 0
    for k in tl.static_range(COUNT):
        at += _index(indices[k], group, index_sizes[k], group < n, POLICY) * index_steps[k]
    value_at = (group * value_step)[:, None] + _place(column, sizes, value_strides, DIMS)[None, :]
    inside = (group < n)[:, None] & (column < width)[None, :]
    value = tl.load(values_ptr + value_at, mask=inside, other=0, eviction_policy=POLICY)
    place = x_ptr + at[:, None] + _place(column, sizes, x_strides, DIMS)[None, :]
    if ADD:
        tl.atomic_add(place, value, mask=inside, sem="relaxed")
    else:
        tl.store(place, value, mask=inside)


@triton.jit
def _link(head_ptr, next_ptr, indices, index_sizes, key_steps, n, COUNT: tl.constexpr, BLOCK: tl.constexpr):
    """Lists of the groups that name the same slab: head (slabs), -1 at their ends."""
    group = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    key = tl.zeros((BLOCK,), tl.int64)
    for k in tl.static_range(COUNT):
        key += _index(indices[k], group.to(tl.int64), index_sizes[k], group < n, "") * key_steps[k]
    tl.store(next_ptr + group, tl.atomic_xchg(head_ptr + key, group, mask=group < n), mask=group < n)


@triton.jit
def _add_lists(
    x_ptr, values_ptr, head_ptr, next_ptr, indices, index_sizes, index_steps, key_steps, width, value_step, across,
    sizes, value_strides, x_strides,
    COUNT: tl.constexpr, DIMS: tl.constexpr, WIDE: tl.constexpr, BOOL: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The head of a list adds up BLOCK elements of all the slabs of values in it."""
    group = tl.program_id(0) // across
    key = group.to(tl.int64) * 0
    at = key
    for k in tl.static_range(COUNT):
        index = _index(indices[k], group.to(tl.int64), index_sizes[k], True, "")
        key += index * key_steps[k]
        at += index * index_steps[k]
    if tl.load(head_ptr + key) == group:
        column = (tl.program_id(0) % across).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
        slab = values_ptr + _place(column, sizes, value_strides, DIMS)
        place = x_ptr + at + _place(column, sizes, x_strides, DIMS)
        following = tl.load(next_ptr + group)
        x = tl.load(place, mask=column < width, other=0)
        total = tl.load(slab + group.to(tl.int64) * value_step, mask=column < width, other=0).to(WIDE)
        while following >= 0:
            value = tl.load(slab + following.to(tl.int64) * value_step, mask=column < width, other=0)
            following = tl.load(next_ptr + following)
            total += value.to(WIDE)
        total += x.to(WIDE)
        tl.store(place, (total != 0 if BOOL else total).to(x_ptr.dtype.element_ty), mask=column < width)


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


def _masked(x, mask, dim, values):
    """``mask`` over dimensions from ``dim`` on; ``values`` do not depend on the place in it."""
    shape = [*x.shape[:dim], 1, *x.shape[dim + mask.ndim :]]
    while values.ndim > len(shape):
        values = values[0]
    steps = values.expand(shape).stride()
    value_strides = [*steps[:dim], *[0] * mask.ndim, *steps[dim + 1 :]]
    mask_strides = [*[0] * dim, *mask.stride(), *[0] * (x.ndim - dim - mask.ndim)]
    sizes, *strides = _merged(x.shape, mask_strides, value_strides, x.stride())
    n, block = x.numel(), 1 << 16
    if x.is_cuda:
        block = 512 if n <= 131072 else 2048 if x.element_size() <= 2 else 1024
    _fill[(triton.cdiv(n, block),)](
        mask.view(torch.uint8), values, x, n, sizes, *strides,
        DIMS=len(sizes), ONE=not any(value_strides), BLOCK=block,
    )  # fmt: skip


def _scattered(x, indices, values, before, where, after, accumulate, truth):
    """Int64 ``indices`` of one shape for the dimensions ``where``; ``before`` and ``after`` are those not indexed."""
    shape, n = indices[0].shape, indices[0].numel()
    outer, inner = ([x.shape[dim] for dim in dims] for dims in (before, after))
    full = [*outer, *shape, *inner]
    while values.ndim > len(full):
        values = values[0]
    values = values.expand(full).reshape([*outer, n, *inner])
    steps = list(values.stride())
    value_step = steps.pop(len(before))
    slab = _merged(outer + inner, steps, [x.stride(dim) for dim in before + after])
    width = math.prod(slab[0])
    index_sizes = tuple(x.shape[dim] for dim in where)
    named = (tuple(indices), index_sizes, tuple(x.stride(dim) for dim in where))
    counts = {"COUNT": len(where), "DIMS": len(slab[0])}
    slabs = math.prod(index_sizes)
    if accumulate and (x.element_size() < 4 or (width >= 64 and n <= 1 << 16 and slabs <= 1 << 22)):
        head = torch.full((slabs,), -1, dtype=torch.int32, device=x.device)
        following = torch.empty(n, dtype=torch.int32, device=x.device)
        key_steps = tuple(math.prod(index_sizes[k + 1 :]) for k in range(len(where)))
        _link[(triton.cdiv(n, 128),)](head, following, *named[:2], key_steps, n, COUNT=len(where), BLOCK=128)
        block = min(triton.next_power_of_2(width), 1024)
        across = triton.cdiv(width, block)
        _add_lists[(n * across,)](
            x, values, head, following, *named, key_steps, width, value_step, across, *slab,
            **counts, WIDE=_wide(x.dtype), BOOL=truth, BLOCK=block, num_warps=4 if block >= 512 else 2,
        )  # fmt: skip
        return
    tile = 1 << 16
    if x.is_cuda:
        tile = 1024 if width > 1 else 512 if n > 1 << 16 else 128
    block = min(triton.next_power_of_2(width), 2048 if x.element_size() <= 2 else 1024)
    groups = min(triton.next_power_of_2(n), max(1, tile // block))
    across = triton.cdiv(width, block)
    _scatter[(triton.cdiv(n, groups) * across,)](
        x, values, *named, n, width, value_step, across, *slab, **counts, ADD=accumulate, GROUPS=groups, BLOCK=block
    )


def _wide(dtype):
    return tl.float64 if dtype == torch.float64 else tl.float32 if dtype.is_floating_point else tl.int64


def index_put_(self, indices, values, accumulate=False):
    """``self``; an index is a tensor of integers, a mask in place of as many dimensions as it has, or None for all."""
    if self.numel() == 0 or values.numel() == 0:
        return self
    tensors = [each for each in indices if each is not None]
    if not tensors:
        index_put_(self[None], [torch.zeros(1, dtype=torch.int64, device=self.device)], values, accumulate)
        return self
    x, values, truth = self, values.resolve_conj(), self.dtype == torch.bool
    if x.is_complex():
        x, values = torch.view_as_real(x), torch.view_as_real(values)
    if truth or not accumulate:
        x, values = (each.view(_SAME_SIZE[each.element_size()]) for each in (x, values))
    found = []
    for each in indices:
        if each is None or each.dtype not in (torch.bool, torch.uint8):
            found.append(each)
            continue
        back = x.ndim - len(found) - each.ndim
        same = values.ndim <= back or values.shape[values.ndim - 1 - back] == 1
        if same and not accumulate and len(tensors) == 1:
            _masked(x, each, len(found), values)
            return self
        found += _indices_of(each)
    where = [dim for dim, each in enumerate(found) if each is not None]
    shape = torch.broadcast_shapes(*(found[dim].shape for dim in where))
    others = [dim for dim in range(x.ndim) if dim not in where]
    # Where the indexed dimensions are not neighbours, those of the indices come first.
    neighbours = where[-1] - where[0] + 1 == len(where)
    before = [dim for dim in others if neighbours and dim < where[0]]
    after = [dim for dim in others if dim not in before]
    chosen = [found[dim].to(torch.int64).expand(shape).contiguous() for dim in where]
    if shape.numel():
        _scattered(x, chosen, values, before, where, after, accumulate, truth)
    return self
