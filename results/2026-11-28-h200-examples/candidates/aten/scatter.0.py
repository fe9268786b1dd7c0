"""scatter.src and scatter.reduce: where lines are short, one program copies a line of self and then writes into it.

Elsewhere self is copied first, and elements find their places by strides. Values that are only moved go as integers of
their size. Sums are atomic additions; products, and 16-bit sums, are made in a loop that compares and exchanges.
"""

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_NUMBERS = {
    torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16, torch.float64: tl.float64,
    torch.int64: tl.int64, torch.int32: tl.int32, torch.int16: tl.int16, torch.int8: tl.int8, torch.uint8: tl.uint8,
}  # fmt: skip


@triton.jit
def _update(at, value, inside, REDUCE: tl.constexpr, NUMBER: tl.constexpr, WIDE: tl.constexpr):
    """Memory at ``at``, seen as integers, holds elements of dtype NUMBER; all pointers can be read."""
    old = tl.load(at, mask=inside, other=0)
    done = (inside == 0).to(tl.int32)
    while tl.max(1 - done) > 0:
        number = old.to(NUMBER, bitcast=True).to(WIDE)
        new = number * value if REDUCE == "multiply" else number + value
        # Those that are done put back what is there.
        new = tl.where(done > 0, old, new.to(NUMBER).to(old.dtype, bitcast=True))
        found = tl.atomic_cas(at, old, new, sem="relaxed")
        done = done | (found == old).to(tl.int32)
        old = found


@triton.jit
def _put(
    out_ptr, bits_ptr, at, value, inside,
    REDUCE: tl.constexpr, NUMBER: tl.constexpr, WIDE: tl.constexpr, EXCHANGE: tl.constexpr,
):  # fmt: skip
    if REDUCE == "":
        tl.store(out_ptr + at, value, mask=inside)
    elif EXCHANGE:
        _update(bits_ptr + tl.where(inside, at, 0), value.to(WIDE), inside, REDUCE, NUMBER, WIDE)
    else:
        tl.atomic_add(out_ptr + at, value, mask=inside, sem="relaxed")


@triton.jit
def _lines(
    x_ptr, index_ptr, src_ptr, out_ptr, bits_ptr, lines, size, count,
    REDUCE: tl.constexpr, NUMBER: tl.constexpr, WIDE: tl.constexpr, EXCHANGE: tl.constexpr,
    LINES: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr,
):  # fmt: skip
    """x and out are (lines, size), index and src (lines, count), all row-major."""
    line = tl.program_id(0).to(tl.int64) * LINES + tl.arange(0, LINES)[:, None]
    for first in range(0, size, BLOCK):
        at = first + tl.arange(0, BLOCK)[None, :]
        inside = (line < lines) & (at < size)
        tl.store(out_ptr + line * size + at, tl.load(x_ptr + line * size + at, mask=inside), mask=inside)
    # Other threads than those that copied an element may write to it next.
    tl.debug_barrier()
    for first in range(0, count, STEP):
        at = first + tl.arange(0, STEP)[None, :]
        inside = (line < lines) & (at < count)
        chosen = tl.load(index_ptr + line * count + at, mask=inside, other=0)
        value = tl.load(src_ptr + line * count + at, mask=inside, other=0)
        _put(out_ptr, bits_ptr, line * size + chosen, value, inside, REDUCE, NUMBER, WIDE, EXCHANGE)


@triton.jit
def _columns(
    x_ptr, index_ptr, src_ptr, out_ptr, bits_ptr, size, count, inner, blocks,
    REDUCE: tl.constexpr, NUMBER: tl.constexpr, WIDE: tl.constexpr, EXCHANGE: tl.constexpr,
    STEP: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """x and out are (outer, size, inner), index and src (outer, count, inner); LANES columns to a program."""
    outer = (tl.program_id(0) // blocks).to(tl.int64)
    lane = (tl.program_id(0) % blocks * LANES + tl.arange(0, LANES))[None, :]
    step = tl.arange(0, STEP)[:, None]
    for first in range(0, size, STEP):
        inside = (first + step < size) & (lane < inner)
        at = (outer * size + first + step) * inner + lane
        tl.store(out_ptr + at, tl.load(x_ptr + at, mask=inside), mask=inside)
    tl.debug_barrier()
    for first in range(0, count, STEP):
        inside = (first + step < count) & (lane < inner)
        at = (outer * count + first + step) * inner + lane
        chosen = tl.load(index_ptr + at, mask=inside, other=0)
        value = tl.load(src_ptr + at, mask=inside, other=0)
        target = (outer * size + chosen) * inner + lane
        _put(out_ptr, bits_ptr, target, value, inside, REDUCE, NUMBER, WIDE, EXCHANGE)


@triton.jit
def _panels(
    index_ptr, src_ptr, out_ptr, bits_ptr, size, count, inner, blocks, panels,
    REDUCE: tl.constexpr, NUMBER: tl.constexpr, WIDE: tl.constexpr, EXCHANGE: tl.constexpr,
    STEP: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """The same after a copy, for long columns: each program has a part of them."""
    outer = (tl.program_id(0) // panels // blocks).to(tl.int64)
    lane = (tl.program_id(0) // panels % blocks * LANES + tl.arange(0, LANES))[None, :]
    step = tl.program_id(0) % panels * STEP + tl.arange(0, STEP)[:, None]
    inside = (step < count) & (lane < inner)
    at = (outer * count + step) * inner + lane
    chosen = tl.load(index_ptr + at, mask=inside, other=0)
    value = tl.load(src_ptr + at, mask=inside, other=0)
    target = (outer * size + chosen) * inner + lane
    _put(out_ptr, bits_ptr, target, value, inside, REDUCE, NUMBER, WIDE, EXCHANGE)


@triton.jit
def _any_shape(
    index_ptr, src_ptr, out_ptr, bits_ptr, n, step, sizes, strides,
    REDUCE: tl.constexpr, NUMBER: tl.constexpr, WIDE: tl.constexpr, EXCHANGE: tl.constexpr,
    DIMS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """index and src are row-major; ``step``: out's stride along the dimension, in ``strides`` 0."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    target = tl.load(index_ptr + i, mask=inside, other=0) * step
    value = tl.load(src_ptr + i, mask=inside, other=0)
    rest = i
    for back in tl.static_range(1, DIMS + 1):
        target += rest % sizes[DIMS - back] * strides[DIMS - back]
        rest = rest // sizes[DIMS - back]
    _put(out_ptr, bits_ptr, target, value, inside, REDUCE, NUMBER, WIDE, EXCHANGE)


def _by_lines(x, index, src, out, bits, dim, meta):
    """Whether this was done: it takes an index of the shape of ``x`` but for ``dim``."""
    size, count = x.shape[dim], index.shape[dim]
    if index.shape[:dim] != x.shape[:dim] or index.shape[dim + 1 :] != x.shape[dim + 1 :]:
        return False
    outer, inner = x.shape[:dim].numel(), x.shape[dim + 1 :].numel()
    width, most = x.element_size(), 1 if x.is_cuda else 1 << 16
    if inner == 1 and (outer >= 200 or size <= 8192):
        block = min(8192 if width <= 2 else 4096, max(64, triton.next_power_of_2(size)))
        lines = max(1, min(most // block, triton.next_power_of_2(outer)))
        _lines[(triton.cdiv(outer, lines),)](
            x.contiguous(), index, src, out, bits, outer, size, count, **meta, LINES=lines, BLOCK=block,
            STEP=min(1024, max(32, triton.next_power_of_2(count))), num_warps=8 if size >= 2048 else 4,
        )  # fmt: skip
        return True
    if inner == 1:
        return False
    lanes = min(64 if width <= 4 else 32, max(16, triton.next_power_of_2(inner)))
    blocks = triton.cdiv(inner, lanes)
    if outer * blocks >= 264 or size * lanes <= 16384:
        step = min(max(1, 2048 // lanes), max(4, triton.next_power_of_2(size)))
        _columns[(outer * blocks,)](
            x.contiguous(), index, src, out, bits, size, count, inner, blocks, **meta, STEP=step, LANES=lanes
        )  # fmt: skip
        return True
    out.copy_(x)
    lanes = min(32, max(8, triton.next_power_of_2(inner)))
    blocks, panels = triton.cdiv(inner, lanes), triton.cdiv(count, 1024 // lanes)
    _panels[(outer * blocks * panels,)](
        index, src, out, bits, size, count, inner, blocks, panels, **meta, STEP=1024 // lanes, LANES=lanes
    )  # fmt: skip
    return True


def _scattered(self, dim, index, src, reduce):
    result = torch.empty(self.shape, dtype=self.dtype, device=self.device)
    if result.numel() == 0 or index.numel() == 0:
        return result.copy_(self)
    # Tensors without dimensions count as ones of one element.
    x, out, index, src = (each if each.ndim else each.unsqueeze(0) for each in (self, result, index, src))
    x, src = x.resolve_conj(), src.resolve_conj()
    dim %= x.ndim
    same = _SAME_SIZE[x.element_size()]
    if reduce == "":
        x, out, src = (each.view(same) for each in (x, out, src))
    bits = out.view(same)
    for each, size in enumerate(index.shape):
        src = src.narrow(each, 0, size)
    index, src = index.contiguous(), src.contiguous()
    number = _NUMBERS[out.dtype]
    exchange = reduce == "multiply" or (reduce == "add" and out.element_size() == 2)
    wide = tl.float32 if out.dtype in (torch.float16, torch.bfloat16) else number
    meta = {"REDUCE": reduce, "NUMBER": number, "WIDE": wide, "EXCHANGE": exchange}
    if not exchange and _by_lines(x, index, src, out, bits, dim, meta):
        return result
    out.copy_(x)
    strides = tuple(0 if each == dim else step for each, step in enumerate(out.stride()))
    n, block = index.numel(), 512 if x.is_cuda else 1 << 16
    _any_shape[(triton.cdiv(n, block),)](
        index, src, out, bits, n, out.stride(dim), tuple(index.shape), strides, **meta, DIMS=index.ndim, BLOCK=block
    )  # fmt: skip
    return result


def scatter_src(self, dim, index, src):
    """A new row-major tensor: a copy of ``self`` with elements of ``src`` where ``index`` says along ``dim``."""
    return _scattered(self, dim, index, src, "")


def scatter_reduce(self, dim, index, src, *, reduce):
    """The same with elements added ("add") or multiplied ("multiply") to what is there."""
    return _scattered(self, dim, index, src, reduce)
