"""matmul: tiles by tensor memory access where memory allows it, by pointers elsewhere; vectors by sums along rows.

Products are summed in float32, with exact products for float32, and rounded once; large ones of float32 are formed by
the tensor cores in float64, as fast as float32 is elsewhere. float64 and complex numbers are summed one product at a
time. Batches are broadcast by strides of 0, and join the rows where other has none.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _place(tile, down, across):
    """Row and column of a tile, in bands of 8 rows: tiles of one time share operands in the cache."""
    band = 8 * across
    first = tile // band * 8
    height = tl.minimum(down - first, 8)
    return first + tile % band % height, tile % band // height


@triton.jit
def _part(desc, batch, row, column, TURNED: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """A block of one matrix, of which memory may hold the transpose."""
    if TURNED:
        part = desc.load([batch, column, row]).reshape(COLUMNS, ROWS).T
    else:
        part = desc.load([batch, row, column]).reshape(ROWS, COLUMNS)
    return part


@triton.jit
def _mm_of_long_rows(
    a_desc, b_desc, out_desc, tiles, down, across, turns, A_TURNED: tl.constexpr, B_TURNED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """16-bit numbers: one program for each multiprocessor, tile after tile."""
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        batch = tile // (down * across)
        tile_row, tile_column = _place(tile % (down * across), down, across)
        row, column = tile_row * ROWS, tile_column * COLUMNS
        total = tl.zeros((ROWS, COLUMNS), tl.float32)
        for turn in range(turns):
            a = _part(a_desc, batch, row, turn * DEPTH, A_TURNED, ROWS, DEPTH)
            b = _part(b_desc, batch, turn * DEPTH, column, B_TURNED, DEPTH, COLUMNS)
            total = tl.dot(a, b, total)
        # Stored in halves, for which less shared memory is kept.
        left, right = total.reshape(ROWS, 2, COLUMNS // 2).permute(0, 2, 1).split()
        out_desc.store([batch, row, column], left.to(out_desc.dtype).reshape(1, ROWS, COLUMNS // 2))
        out_desc.store([batch, row, column + COLUMNS // 2], right.to(out_desc.dtype).reshape(1, ROWS, COLUMNS // 2))


@triton.jit
def _mm_of_short_rows(
    a_desc, b_desc, out_desc, down, across, A_TURNED: tl.constexpr, B_TURNED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """Up to DEPTH terms in a sum of 16-bit numbers: a program keeps its rows of a and goes along the columns."""
    batch, row = tl.program_id(0) // down, tl.program_id(0) % down * ROWS
    a = _part(a_desc, batch, row, 0, A_TURNED, ROWS, DEPTH)
    for tile in tl.range(0, across):
        total = tl.dot(a, _part(b_desc, batch, 0, tile * COLUMNS, B_TURNED, DEPTH, COLUMNS))
        out_desc.store([batch, row, tile * COLUMNS], total.to(out_desc.dtype).reshape(1, ROWS, COLUMNS))


@triton.jit(do_not_specialize=["turns"])
def _mm(
    a_ptr, b_ptr, out_ptr, m, n, k, a_batch, a_row, a_depth, b_batch, b_depth, b_column, turns, down, across,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, EVEN: tl.constexpr, FLOAT64: tl.constexpr,
):  # fmt: skip
    """A tile of a product, by pointers. EVEN: tiles leave no rest."""
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    tile_row, tile_column = _place(tl.program_id(0) % (down * across), down, across)
    row = (tile_row.to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = (tile_column.to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    step = tl.arange(0, DEPTH)
    deep = tl.full((), DEPTH, tl.int64)
    a_at = a_ptr + batch * a_batch + row * a_row + step.to(tl.int64)[None, :] * a_depth
    b_at = b_ptr + batch * b_batch + step.to(tl.int64)[:, None] * b_depth + column * b_column
    SUM: tl.constexpr = tl.float64 if FLOAT64 else tl.float32
    total = tl.zeros((ROWS, COLUMNS), SUM)
    for turn in range(turns):
        if EVEN:
            a, b = tl.load(a_at), tl.load(b_at)
        else:
            inside = step < k - turn * DEPTH
            a = tl.load(a_at, mask=(row < m) & inside[None, :], other=0.0)
            b = tl.load(b_at, mask=inside[:, None] & (column < n), other=0.0)
        if FLOAT64:
            a, b = a.to(SUM), b.to(SUM)
        total = tl.dot(a, b, total, input_precision="ieee", out_dtype=SUM)
        a_at += deep * a_depth
        b_at += deep * b_depth
    out_at, out = out_ptr + batch * m * n + row * n + column, total.to(out_ptr.dtype.element_ty)
    if EVEN:
        tl.store(out_at, out)
    else:
        tl.store(out_at, out, mask=(row < m) & (column < n))


@triton.jit
def _mm_by_products(
    a_ptr, b_ptr, out_ptr, m, n, k, a_batch, a_row, a_depth, b_batch, b_depth, b_column, down, across,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, PAIR: tl.constexpr,
):  # fmt: skip
    """float64, or a PAIR of parts for each complex number; strides then count parts."""
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    tile = tl.program_id(0) % (down * across)
    row = (tile // across * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = (tile % across * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)[None, :]
    a_at = a_ptr + batch * a_batch + row * a_row
    b_at = b_ptr + batch * b_batch + column * b_column
    real = tl.zeros((ROWS, COLUMNS), out_ptr.dtype.element_ty)
    imaginary = tl.zeros((ROWS, COLUMNS), out_ptr.dtype.element_ty)
    for _ in range(k):
        a = tl.load(a_at, mask=row < m, other=0.0)
        b = tl.load(b_at, mask=column < n, other=0.0)
        real += a * b
        if PAIR:
            a_imaginary = tl.load(a_at + 1, mask=row < m, other=0.0)
            b_imaginary = tl.load(b_at + 1, mask=column < n, other=0.0)
            real -= a_imaginary * b_imaginary
            imaginary += a * b_imaginary
            imaginary += a_imaginary * b
        a_at += a_depth
        b_at += b_depth
    out_at = out_ptr + ((batch * m + row) * n + column) * (2 if PAIR else 1)
    tl.store(out_at, real, mask=(row < m) & (column < n))
    if PAIR:
        tl.store(out_at + 1, imaginary, mask=(row < m) & (column < n))


@triton.jit
def _mv(
    a_ptr, x_ptr, out_ptr, m, k, a_batch, a_row, a_depth, x_batch, x_step, down,
    ROWS: tl.constexpr, DEPTH: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """A matrix (m, k) times a vector, both float32 or less."""
    batch = (tl.program_id(0) // down).to(tl.int64)
    row = (tl.program_id(0) % down * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    step = tl.arange(0, DEPTH).to(tl.int64)
    deep = tl.full((), DEPTH, tl.int64)
    a_at = a_ptr + batch * a_batch + row[:, None] * a_row + step[None, :] * a_depth
    x_at = x_ptr + batch * x_batch + step * x_step
    total = tl.zeros((ROWS, DEPTH), tl.float32)
    for first in range(0, k, DEPTH):
        if EVEN:
            a, x = tl.load(a_at), tl.load(x_at)
        else:
            a = tl.load(a_at, mask=(row < m)[:, None] & (first + step < k)[None, :], other=0.0)
            x = tl.load(x_at, mask=first + step < k, other=0.0)
        total += a.to(tl.float32) * x.to(tl.float32)[None, :]
        a_at += deep * a_depth
        x_at += deep * x_step
    y = tl.sum(total, axis=1)
    tl.store(out_ptr + batch * m + row, y.to(out_ptr.dtype.element_ty), mask=row < m)


def _descriptor(x, block):
    """Of 16-bit numbers, and whether memory holds the transposes; None where the hardware cannot read it."""
    for turned, each in enumerate((x, x.mT)):
        apart, step, one = each.stride()
        if each.shape[0] == 1:
            apart = each.shape[1] * step
        even = one == 1 and not (step % 8 or apart % 8 or x.data_ptr() % 16)
        if even and each.shape[2] <= step < 1 << 31 and 0 < apart * each.shape[0] < 1 << 38:
            block = block[::-1] if turned else block
            return TensorDescriptor(each, list(each.shape), [apart, step, 1], [1, *block]), bool(turned)
    return None


def _by_descriptors(a, b, out):
    """Whether this was done: it takes large products of 16-bit numbers, 16-byte boundaries, and a GPU."""
    (batches, m, n), k = out.shape, a.shape[2]
    short = k <= 128
    rows, columns, depth = (256, 128, 128) if short else (128, 256, 64)
    down, across = triton.cdiv(m, rows), triton.cdiv(n, columns)
    tiles = batches * down * across
    if not a.is_cuda or a.element_size() != 2 or n % 8 or m < rows or max(batches, m, n, k, tiles) >= 1 << 30:
        return False
    if n < 512 or batches * down < 396 or k <= 64 if short else n < columns or tiles < 110 or k < 256:
        return False
    first, second = _descriptor(a, [rows, depth]), _descriptor(b, [depth, columns])
    if first is None or second is None:
        return False
    result = TensorDescriptor(out, [batches, m, n], [m * n, n, 1], [1, rows, columns if short else columns // 2])
    meta = {"A_TURNED": first[1], "B_TURNED": second[1], "ROWS": rows, "COLUMNS": columns, "DEPTH": depth}
    if short:
        _mm_of_short_rows[(batches * down,)](first[0], second[0], result, down, across, **meta, num_warps=8)
    else:
        _mm_of_long_rows[(min(tiles, 132),)](
            first[0], second[0], result, tiles, down, across, triton.cdiv(k, depth), **meta, num_warps=8, num_stages=4
        )  # fmt: skip
    return True


def _by_rows(a, x, out):
    batches, m, k = a.shape
    if a.stride(1) == 1 and a.stride(2) != 1 and m > 1:
        rows, depth = (max(16, min(most, triton.next_power_of_2(size))) for most, size in ((128, m), (64, k)))
    else:
        rows = 8 if m >= 2048 else 2 if m >= 256 else 1
        most = (8192 // rows if rows > 1 else 4096) // (2 if a.element_size() == 4 else 1)
        depth = max(32, min(most, triton.next_power_of_2(k)))
    rows = rows if out.is_cuda else min(256, triton.next_power_of_2(m))
    down = triton.cdiv(m, rows)
    _mv[(down * batches,)](
        a, x, out, m, k, *a.stride(), *x.stride()[:2], down, ROWS=rows, DEPTH=depth, EVEN=not (m % rows or k % depth)
    )  # fmt: skip


def _by_tiles(a, b, out):
    (batches, m, n), k, wide = out.shape, a.shape[2], out.element_size() == 4
    most = 128 if out.is_cuda else 512
    rows, columns = (max(16, min(most, triton.next_power_of_2(size))) for size in (m, n))
    if wide and triton.cdiv(m, rows) * triton.cdiv(n, columns) * batches < 132:
        rows, columns = min(rows, 64), min(columns, 64)
    float64 = wide and not (m % 64 or n % 128 or k % 16) and batches * m * n >= 64 * 128 * 66
    if float64:
        rows, columns = 64, 128
    depth = 16 if wide else 64 if k > 32 else max(16, triton.next_power_of_2(k))
    down, across = triton.cdiv(m, rows), triton.cdiv(n, columns)
    # 128 registers leave room for two programs on a multiprocessor.
    _mm[(down * across * batches,)](
        a, b, out, m, n, k, *a.stride(), *b.stride(), triton.cdiv(k, depth), down, across,
        ROWS=rows, COLUMNS=columns, DEPTH=depth, EVEN=not (m % rows or n % columns or k % depth), FLOAT64=float64,
        num_warps=8 if float64 or rows * columns >= 128 * 128 else 2 if not wide and rows * columns <= 32 * 32 else 4,
        num_stages=3, maxnreg=128 if float64 else None,
    )  # fmt: skip


def matmul(self, other):
    """A row-major tensor of the operands' dtype; a vector counts as a row on the left and as a column on the right."""
    a = (self.unsqueeze(0) if self.ndim == 1 else self).resolve_conj()
    b = (other.unsqueeze(1) if other.ndim == 1 else other).resolve_conj()
    (m, k), n = a.shape[-2:], b.shape[-1]
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*lead, *([m] if self.ndim > 1 else []), *([n] if other.ndim > 1 else []))
    out = torch.empty(shape, dtype=self.dtype, device=self.device)
    if out.numel() == 0 or k == 0:
        return out.zero_()
    # Views, unless several dimensions are broadcast or permuted in different ways.
    a, b = a.expand(*lead, m, k).reshape(-1, m, k), b.expand(*lead, k, n).reshape(-1, k, n)
    if len(b) > 1 and b.stride(0) == 0 and (m == 1 or a.stride(0) == a.stride(1) * m):
        # One matrix for all batches: they are more rows.
        a, b = a.reshape(1, -1, k), b[:1]
    batches, m, _ = a.shape
    y = out.view(batches, m, n)
    if y.is_complex() or y.dtype == torch.float64:
        parts = [torch.view_as_real(each) if y.is_complex() else each for each in (a, b, y)]
        rows, columns = (max(16, min(most, triton.next_power_of_2(size))) for most, size in ((32, m), (64, n)))
        down, across = triton.cdiv(m, rows), triton.cdiv(n, columns)
        _mm_by_products[(down * across * batches,)](
            *parts, m, n, k, *parts[0].stride()[:3], *parts[1].stride()[:3], down, across,
            ROWS=rows, COLUMNS=columns, PAIR=y.is_complex(),
        )  # fmt: skip
    elif n == 1:
        _by_rows(a, b, y)
    elif m == 1:
        _by_rows(b.mT, a.mT, y)
    elif not _by_descriptors(a, b, y):
        _by_tiles(a, b, y)
    return out
