"""bmm: a tile of a product by each program; products of 16 and 32 bits are summed in float32, with exact products.

Large products of float32 are formed by the tensor cores in float64, as fast as float32 is elsewhere; large matrices of
16 bits come and go by tensor descriptors, which read zeros outside of them. float64 and complex numbers are summed one
product at a time in float64.
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
def _long_products(
    a_desc, b_desc, out_desc, tiles, down, across, turns, A_TURNED: tl.constexpr, B_TURNED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, HALVES: tl.constexpr,
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
        if HALVES:
            # For halves less shared memory is kept.
            left, right = total.reshape(ROWS, 2, COLUMNS // 2).permute(0, 2, 1).split()
            out_desc.store([batch, row, column], left.to(out_desc.dtype).reshape(1, ROWS, COLUMNS // 2))
            out_desc.store([batch, row, column + COLUMNS // 2], right.to(out_desc.dtype).reshape(1, ROWS, COLUMNS // 2))
        else:
            out_desc.store([batch, row, column], total.to(out_desc.dtype).reshape(1, ROWS, COLUMNS))


@triton.jit
def _short_products(
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
def _dot(
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
def _outer(
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
    real = tl.zeros((ROWS, COLUMNS), tl.float64)
    imaginary = tl.zeros((ROWS, COLUMNS), tl.float64)
    for _ in range(k):
        a = tl.load(a_at, mask=row < m, other=0.0).to(tl.float64)
        b = tl.load(b_at, mask=column < n, other=0.0).to(tl.float64)
        real += a * b
        if PAIR:
            a_imaginary = tl.load(a_at + 1, mask=row < m, other=0.0).to(tl.float64)
            b_imaginary = tl.load(b_at + 1, mask=column < n, other=0.0).to(tl.float64)
            real -= a_imaginary * b_imaginary
            imaginary += a * b_imaginary
            imaginary += a_imaginary * b
        a_at += a_depth
        b_at += b_depth
    out_at = out_ptr + ((batch * m + row) * n + column) * (2 if PAIR else 1)
    tl.store(out_at, real.to(out_ptr.dtype.element_ty), mask=(row < m) & (column < n))
    if PAIR:
        tl.store(out_at + 1, imaginary.to(out_ptr.dtype.element_ty), mask=(row < m) & (column < n))


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
    rows, columns, depth = (256, 128, 128) if short else (128, 256 if n > 128 else 128, 64)
    halves = columns == 256
    down, across = triton.cdiv(m, rows), triton.cdiv(n, columns)
    tiles = batches * down * across
    if not a.is_cuda or a.element_size() != 2 or n % 8 or m < rows or max(batches, m, n, k, tiles) >= 1 << 30:
        return False
    if n < 512 or batches * down < 396 or k <= 64 if short else n < columns or tiles < 110 or k < 256:
        return False
    first, second = _descriptor(a, [rows, depth]), _descriptor(b, [depth, columns])
    if first is None or second is None:
        return False
    result = TensorDescriptor(out, [batches, m, n], [m * n, n, 1], [1, rows, columns // 2 if halves else columns])
    meta = {"A_TURNED": first[1], "B_TURNED": second[1], "ROWS": rows, "COLUMNS": columns, "DEPTH": depth}
    if short:
        _short_products[(batches * down,)](first[0], second[0], result, down, across, **meta, num_warps=8)
    else:
        _long_products[(min(tiles, 132),)](
            first[0], second[0], result, tiles, down, across, triton.cdiv(k, depth), **meta, HALVES=halves,
            num_warps=8, num_stages=4,
        )  # fmt: skip
    return True


def _tiling(dtype, z, m, n, k):
    """Tile of the result, step along k, warps and stages."""
    large = z * triton.cdiv(m, 128) * triton.cdiv(n, 128)
    if dtype == torch.float32:
        if min(m, n) >= 128 and large >= 200:
            return 128, 128, 16, 8, 3
        return (64, 64, 16, 4, 2) if min(m, n) >= 64 and z * m * n >= 1 << 20 else (32, 32, 32, 4, 2)
    if min(m, n) >= 128:
        return (128, 128, 64, 8, 2 if k <= 128 else 3) if large >= 132 else (64, 64, 64, 4, 4)
    if max(m, n) <= 16:
        return 16, 16, 64, 1, 2
    if min(m, n) <= 16:
        return (16, 64, 64, 4, 3) if m <= 16 else (64, 16, 64, 4, 3)
    return 64, 64, 32, 4, 3


def bmm(self, mat2):
    """A new row-major tensor; operands of any strides."""
    a, b = self.resolve_conj(), mat2.resolve_conj()
    (z, m, k), n = a.shape, b.shape[2]
    out = torch.empty((z, m, n), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    if a.is_complex() or a.dtype == torch.float64:
        parts = [torch.view_as_real(each) if each.is_complex() else each for each in (a, b, out)]
        down, across = triton.cdiv(m, 32), triton.cdiv(n, 32)
        _outer[(z * down * across,)](
            *parts, m, n, k, *parts[0].stride()[:3], *parts[1].stride()[:3], down, across,
            ROWS=32, COLUMNS=32, PAIR=a.is_complex(),
        )  # fmt: skip
        return out
    if _by_descriptors(a, b, out):
        return out
    rows, columns, depth, warps, stages = _tiling(a.dtype, z, m, n, k)
    float64 = a.element_size() == 4 and not (m % 64 or n % 128 or k % 16) and z * m * n >= 64 * 128 * 66
    if float64:
        rows, columns, depth, warps, stages = 64, 128, 16, 8, 3
    down, across = triton.cdiv(m, rows), triton.cdiv(n, columns)
    # 128 registers leave room for two programs on a multiprocessor.
    _dot[(z * down * across,)](
        a, b, out, m, n, k, *a.stride(), *b.stride(), triton.cdiv(k, depth), down, across,
        ROWS=rows, COLUMNS=columns, DEPTH=depth, EVEN=not (m % rows or n % columns or k % depth), FLOAT64=float64,
        num_warps=warps, num_stages=stages, maxnreg=128 if float64 else None,
    )  # fmt: skip
    return out
