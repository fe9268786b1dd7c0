"""sort.stable: small tiles sorted by counting ranks, then merged in pairs, each element by a binary search.

An element becomes an int64 key: above, 32 bits in the order of the values; below, where it stood. So all keys differ,
and the sort is stable. Elements of 64 bits are sorted twice, by their lower bits and then by their higher ones.

What it does not do: rows of 2^31 elements and more, and few passes over memory, as a radix sort needs; here each
doubling of the runs is one.
"""

import torch
import triton
import triton.language as tl

_SAME_SIZE = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_INFINITY = {torch.float16: 0x7C00, torch.bfloat16: 0x7F80, torch.float32: 0x7F800000, torch.float64: 0x7FF << 52}
"""Its bits: those above are NaN."""


@triton.jit
def _keys(
    x_ptr, order_ptr, out_ptr, total, n, room, infinity, most,
    FLOATING: tl.constexpr, WIDE: tl.constexpr, LOWER: tl.constexpr, ORDERED: tl.constexpr, DOWN: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    """Keys of x (rows, n), given by its bits, into out (rows, room), filled up with the greatest. ORDERED: read x in
    the order of a first sort. LOWER: by the lower 32 bits of 64.
    """
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    row = i // room
    place = i % room
    inside = (i < total) & (place < n)
    at = place
    if ORDERED:
        at = tl.load(order_ptr + row * n + place, mask=inside, other=0)
    bits = tl.load(x_ptr + row * n + at, mask=inside, other=0).to(tl.int64)
    if FLOATING:
        # A sign and a size: both zeros are 0, and every NaN is the same.
        size = bits & most
        bits = tl.where(size > infinity, most, tl.where(bits < 0, -size, size))
    if DOWN:
        bits = ~bits
    if WIDE:
        bits = (bits & 0xFFFFFFFF) - 0x80000000 if LOWER else bits >> 32
    tl.store(out_ptr + i, tl.where(place < n, (bits << 32) | place, 0x7FFFFFFFFFFFFFFF), mask=i < total)


@triton.jit
def _sort_tiles(keys_ptr, out_ptr, tiles, ROWS: tl.constexpr, TILE: tl.constexpr):
    """Sort each of ``tiles`` runs of TILE keys: one's place is how many are less. Those that fill up may share one."""
    run = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    step = tl.arange(0, TILE)
    start = run[:, None] * TILE
    inside = run[:, None] < tiles
    keys = tl.load(keys_ptr + start + step[None, :], mask=inside, other=0)
    others = tl.load(keys_ptr + start[:, :, None] + step[None, None, :], mask=inside[:, :, None], other=0)
    rank = tl.sum((others < keys[:, :, None]).to(tl.int32), axis=2)
    tl.store(out_ptr + start + rank, keys, mask=inside)


@triton.jit
def _merge(keys_ptr, out_ptr, total, room, run, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """Sorted runs of ``run`` keys become sorted runs of twice as many; rows of ``room`` keys stay apart."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    row = i // room * room
    mine = (i - row) // run
    begin = row + (mine ^ 1) * run
    end = tl.minimum(begin + run, row + room)
    key = tl.load(keys_ptr + i, mask=inside, other=0)
    # How many keys of the other run are less: all keys differ, so that each result has one place.
    low = tl.minimum(begin, end)
    high = end
    for _ in range(STEPS):
        middle = (low + high) // 2
        less = tl.load(keys_ptr + middle, mask=inside & (low < high), other=0) < key
        search = low < high
        low = tl.where(search & less, middle + 1, low)
        high = tl.where(search & ~less, middle, high)
    other = low - tl.minimum(begin, end)
    place = row + mine // 2 * 2 * run + (i - row - mine * run) + other
    tl.store(out_ptr + place, key, mask=inside)


@triton.jit
def _results(
    x_ptr, keys_ptr, order_ptr, values_ptr, places_ptr, total, n, room,
    VALUES: tl.constexpr, ORDERED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """From sorted keys where each element stood, and the elements themselves."""
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = i < total
    row = i // n
    place = tl.load(keys_ptr + row * room + i % n, mask=inside, other=0) & 0xFFFFFFFF
    if ORDERED:
        place = tl.load(order_ptr + row * n + place, mask=inside, other=0)
    tl.store(places_ptr + i, place, mask=inside)
    if VALUES:
        tl.store(values_ptr + i, tl.load(x_ptr + row * n + place, mask=inside), mask=inside)


def _sorted(x, order, values, places, lower, descending):
    """Sort rows of x (rows, n): by all bits or the lower half, from an earlier ``order`` or from none."""
    rows, n = x.shape
    tile = max(16, min(triton.next_power_of_2(n), 64 if x.is_cuda else 128))
    room = tile * triton.cdiv(n, tile)
    # Whatever fills up the last tile sorts behind everything, in places that need not be written.
    keys = torch.full((rows * room,), 2**63 - 1, dtype=torch.int64, device=x.device)
    merged = keys.clone()
    block = 1024 if x.is_cuda else 1 << 17
    ordered, bits = order is not None, 8 * x.element_size()
    earlier, plain = (order if ordered else places), x.view(_SAME_SIZE[x.element_size()])
    if x.dtype in (torch.bool, torch.uint8):
        plain = x.view(torch.uint8)
    _keys[(triton.cdiv(keys.numel(), block),)](
        plain, earlier, keys, keys.numel(), n, room, _INFINITY.get(x.dtype, 0), 2 ** (bits - 1) - 1,
        FLOATING=x.dtype in _INFINITY, WIDE=bits == 64, LOWER=lower, ORDERED=ordered, DOWN=descending, BLOCK=block,
    )  # fmt: skip
    tiles = keys.numel() // tile
    several = 1 if x.is_cuda else min(16, triton.next_power_of_2(tiles))
    _sort_tiles[(triton.cdiv(tiles, several),)](keys, merged, tiles, ROWS=several, TILE=tile)
    keys, merged, run = merged, keys, tile
    while run < room:
        _merge[(triton.cdiv(keys.numel(), block),)](
            keys, merged, keys.numel(), room, run, STEPS=run.bit_length(), BLOCK=block
        )  # fmt: skip
        keys, merged, run = merged, keys, 2 * run
    _results[(triton.cdiv(x.numel(), block),)](
        plain, keys, earlier, plain if values is None else values.view(plain.dtype), places, x.numel(), n, room,
        VALUES=values is not None, ORDERED=ordered, BLOCK=block,
    )  # fmt: skip


def sort_stable(self, *, stable, dim=-1, descending=False):
    """Values of ``self`` in order along ``dim``, and int64 places; always stable."""
    if self.numel() == 0:
        return torch.empty_like(self), torch.empty(self.shape, dtype=torch.int64, device=self.device)
    x = (self.movedim(dim, -1) if self.ndim else self.reshape(1)).contiguous()
    shape, n = x.shape, x.shape[-1]
    x = x.view(-1, n)
    values, places = torch.empty_like(x), torch.empty(x.shape, dtype=torch.int64, device=x.device)
    order = None
    if x.element_size() == 8:
        order = torch.empty_like(places)
        _sorted(x, None, None, order, True, descending)
    _sorted(x, order, values, places, False, descending)
    found = [each.view(shape) for each in (values, places)]
    if self.ndim == 0:
        return tuple(each.reshape(()) for each in found)
    return tuple(each.movedim(-1, dim) for each in found)
