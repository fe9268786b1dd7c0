"""sort.stable: short rows are sorted in registers; of longer ones runs of 64, which are then merged, four at a time.

An element becomes a signed number in the order of the values, with its place in the bits below: so all keys differ, and
the sort is stable. Elements of 64 bits have their places beside them. A merge is a binary search of each key in the
other runs. Of floats, -0 comes back as 0 and every NaN as the same one. Rows have fewer than 2^31 elements.
"""

import torch
import triton
import triton.language as tl

_BITS = {
    1: torch.int8,
    2: torch.int16,
    4: torch.int32,
    8: torch.int64,
    torch.bool: torch.uint8,
    torch.uint8: torch.uint8,
}
"""A dtype of the same size."""
_INFINITY = {torch.float16: 0x7C00, torch.bfloat16: 0x7F80, torch.float32: 0x7F800000, torch.float64: 0x7FF << 52}
"""Its bits: those above are NaN."""
_BEHIND_ALL = tl.constexpr(2**63 - 1)
_RUN = tl.constexpr(64)


@triton.jit
def _number(x, INFINITY: tl.constexpr, DOWN: tl.constexpr):
    """The signed number, of 32 or 64 bits, for an element that is given by its bits."""
    MOST: tl.constexpr = (1 << (x.dtype.primitive_bitwidth - 1)) - 1
    number = x.to(tl.int64 if x.dtype.primitive_bitwidth == 64 else tl.int32)
    if INFINITY > 0:
        # A sign and a size: both zeros are 0, and every NaN is the same.
        size = number & MOST
        number = tl.where(size > INFINITY, MOST, tl.where(number < 0, -size, size))
    return ~number if DOWN else number


@triton.jit
def _store(values_ptr, places_ptr, at, number, place, inside, INFINITY: tl.constexpr, DOWN: tl.constexpr):
    """The elements of numbers, and their places."""
    dtype: tl.constexpr = values_ptr.dtype.element_ty
    if DOWN:
        number = ~number
    if INFINITY > 0:
        number = tl.where(number < 0, -number | -(1 << (dtype.primitive_bitwidth - 1)), number)
    tl.store(values_ptr + at, number.to(dtype), mask=inside)
    tl.store(places_ptr + at, place.to(tl.int64), mask=inside)


@triton.jit(do_not_specialize=["rows", "row_step"])
def _sort_rows(
    x_ptr, values_ptr, places_ptr, rows, n, row_step, step,
    INFINITY: tl.constexpr, DOWN: tl.constexpr, BITS: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Whole rows; BITS bits of a key are the place."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    x = tl.load(x_ptr + row * row_step + column.to(tl.int64) * step, mask=inside, other=0)
    KEY: tl.constexpr = tl.int64 if BITS == 32 else tl.int32
    key = (_number(x, INFINITY, DOWN).to(KEY) << BITS) | column.to(KEY)
    key = tl.sort(tl.where(inside, key, (1 << (2 * BITS - 1)) - 1))
    number, place = (key >> BITS).to(tl.int32), key & ((1 << BITS) - 1)
    _store(values_ptr, places_ptr, row * n + column, number, place, inside, INFINITY, DOWN)


@triton.jit(do_not_specialize=["n", "groups", "row_step", "step"])
def _sort_runs(
    x_ptr, keys_ptr, places_ptr, n, groups, row_step, step,
    WIDE: tl.constexpr, INFINITY: tl.constexpr, DOWN: tl.constexpr, RUNS: tl.constexpr,
):  # fmt: skip
    """Keys of x, in runs that are in order. WIDE: a key is an element of 64 bits, and its place is stored, too."""
    row = (tl.program_id(0) // groups).to(tl.int64)
    first = tl.program_id(0) % groups * (RUNS * _RUN)
    column = first + tl.arange(0, RUNS)[:, None] * _RUN + tl.arange(0, _RUN)[None, :]
    inside = column < n
    x = tl.load(x_ptr + row * row_step + column.to(tl.int64) * step, mask=inside, other=0)
    key = _number(x, INFINITY, DOWN).to(tl.int64)
    if WIDE:
        # There is one run here, and an element's place in it is the number of those before it.
        key = tl.where(inside, key, _BEHIND_ALL)
        other = tl.trans(key)
        before = (other < key) | ((other == key) & (tl.trans(column) < column))
        at = row * n + first + tl.sum(before.to(tl.int32), axis=0)[None, :]
        tl.store(places_ptr + at, column, mask=inside)
    else:
        key = tl.sort(tl.where(inside, (key << 32) | column.to(tl.int64), _BEHIND_ALL))
        at = row * n + column
    tl.store(keys_ptr + at, key, mask=inside)


@triton.jit
def _search(keys_ptr, n, run, other, shift):
    """Run ``other``, to be searched for keys of ``run``: where it is, its length, and whether equal keys go before."""
    length = tl.minimum(tl.maximum(n - (other << shift), 0), (other * 0 + 1) << shift)
    return keys_ptr + tl.where(length > 0, other << shift, 0), length, other < run


@triton.jit
def _less(at, key, equal_too, WIDE: tl.constexpr):
    x = tl.load(at)
    less = x < key
    if WIDE:
        less = less | ((x == key) & equal_too)
    return less


@triton.jit
def _half(run_ptr, key, count, left, equal_too, WIDE: tl.constexpr):
    """Of ``left`` keys behind the first ``count`` half remain to be searched, rounded up."""
    half = left >> 1
    less = _less(run_ptr + (tl.maximum(half, 1) - 1) + count, key, equal_too, WIDE)
    return tl.where(less, count + half, count), left - half


@triton.jit
def _count(run_ptr, key, count, left, equal_too, WIDE: tl.constexpr):
    """How many keys of a run go before, where one is left, or none of an empty run."""
    return tl.where(left > 0, count + _less(run_ptr + count, key, equal_too, WIDE).to(tl.int32), 0)


@triton.jit(do_not_specialize=["n", "blocks", "shift"])
def _merge(
    keys_ptr, earlier_ptr, out_ptr, later_ptr, values_ptr, places_ptr, n, blocks, shift,
    WAYS: tl.constexpr, WHOLE: tl.constexpr, LAST: tl.constexpr, WIDE: tl.constexpr,
    INFINITY: tl.constexpr, DOWN: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Runs of 2^shift keys become runs of WAYS, 2 or 4, times as many. WHOLE: a block lies in one run. Where WIDE the
    keys' places go from ``earlier`` to ``later``. LAST: results are stored instead.
    """
    row = (tl.program_id(0) // blocks).to(tl.int64) * n
    first = tl.program_id(0) % blocks * BLOCK
    column = first + tl.arange(0, BLOCK)
    inside = column < n
    keys_ptr += row
    key = tl.load(keys_ptr + column, mask=inside, other=0)
    place = tl.load(earlier_ptr + row + column, mask=inside, other=0) if WIDE else key & 0xFFFFFFFF
    run = (first if WHOLE else column) >> shift
    # Three searches in one loop: their loads overlap.
    a_ptr, a_left, a_equal = _search(keys_ptr, n, run, run ^ 1, shift)
    b_ptr, b_left, b_equal = _search(keys_ptr, n, run, run ^ 2, shift)
    c_ptr, c_left, c_equal = _search(keys_ptr, n, run, run ^ 3, shift)
    a, b, c = column * 0, column * 0, column * 0
    for _ in range(shift):
        a, a_left = _half(a_ptr, key, a, a_left, a_equal, WIDE)
        if WAYS == 4:
            b, b_left = _half(b_ptr, key, b, b_left, b_equal, WIDE)
            c, c_left = _half(c_ptr, key, c, c_left, c_equal, WIDE)
    at = row + (column - ((run & (WAYS - 1)) << shift) + _count(a_ptr, key, a, a_left, a_equal, WIDE))
    if WAYS == 4:
        at += _count(b_ptr, key, b, b_left, b_equal, WIDE) + _count(c_ptr, key, c, c_left, c_equal, WIDE)
    if LAST:
        number = key if WIDE else (key >> 32).to(tl.int32)
        _store(values_ptr, places_ptr, at, number, place, inside, INFINITY, DOWN)
    else:
        tl.store(out_ptr + at, key, mask=inside)
        if WIDE:
            tl.store(later_ptr + at, place, mask=inside)


def _merged(x, values, places, rows, n, row_step, step, order):
    """Rows by runs and merges."""
    wide, block, shift = x.element_size() == 8, 512, _RUN.value.bit_length() - 1
    keys = torch.empty((2, rows * n), dtype=torch.int64, device=x.device)
    beside = torch.empty(keys.shape, dtype=torch.int32, device=x.device) if wide else keys
    runs = 1 if wide else 8
    groups, blocks = triton.cdiv(n, runs * _RUN.value), triton.cdiv(n, block)
    _sort_runs[(rows * groups,)](x, keys[0], beside[0], n, groups, row_step, step, WIDE=wide, RUNS=runs, **order)
    doublings = (triton.cdiv(n, _RUN.value) - 1).bit_length()
    passes = max(1, triton.cdiv(doublings, 2))
    for turn in range(passes):
        ways = 2 if turn == 0 and doublings % 2 else 4
        old, new = turn % 2, 1 - turn % 2
        _merge[(rows * blocks,)](
            keys[old], beside[old], keys[new], beside[new], values, places, n, blocks, shift, WAYS=ways,
            WHOLE=1 << shift >= block, LAST=turn == passes - 1, WIDE=wide, BLOCK=block, **order,
        )  # fmt: skip
        shift += ways // 2


def sort_stable(self, *, stable, dim=-1, descending=False):
    """Values of ``self`` in order along ``dim``, and int64 places; always stable."""
    x = self.movedim(dim, -1) if self.ndim else self.reshape(1)
    values, places = (torch.empty(x.shape, dtype=dtype, device=x.device) for dtype in (x.dtype, torch.int64))
    results = tuple(each.movedim(-1, dim) if self.ndim else each.reshape(()) for each in (values, places))
    if x.numel() == 0:
        return results
    n, size = x.shape[-1], x.element_size()
    bits = _BITS.get(x.dtype, _BITS[size])
    # A view where the other dimensions lie evenly, else a copy.
    x, values = x.reshape(-1, n).view(bits), values.view(bits)
    rows, order = x.shape[0], {"INFINITY": _INFINITY.get(self.dtype, 0), "DOWN": bool(descending)}
    if size == 8 or n > (1024 if size == 4 else 2048):
        _merged(x, values, places, rows, n, *x.stride(), order)
        return results
    block = max(16, triton.next_power_of_2(n))
    height = min(max(1, 1024 // block), triton.next_power_of_2(rows))
    _sort_rows[(triton.cdiv(rows, height),)](
        x, values, places, rows, n, *x.stride(), BITS=32 if size == 4 else 16, ROWS=height, BLOCK=block,
        num_warps=1 if height * block < 128 else 4 if height * block <= 1024 else 8, **order,
    )  # fmt: skip
    return results
