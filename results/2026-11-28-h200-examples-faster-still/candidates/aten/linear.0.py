"""linear: input @ weight.T + bias, tile by tile, summed in float32 (exact products for float32), rounded once.

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


@triton.jit(do_not_specialize=["turns"])
def _products(
    a_ptr, b_ptr, bias_ptr, out_ptr, m, n, k, a_row, a_depth, b_row, b_depth, bias_step, turns, down, across,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, EVEN: tl.constexpr, FLOAT64: tl.constexpr,
    BIAS: tl.constexpr,
):  # fmt: skip
    """A tile of out (m, n); a (m, k) and b (n, k) of any strides. EVEN: tiles leave no rest."""
    tile_row, tile_column = _place(tl.program_id(0), down, across)
    row = (tile_row.to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = tile_column.to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    step = tl.arange(0, DEPTH)
    a_at = a_ptr + row * a_row + (step.to(tl.int64) * a_depth)[None, :]
    b_at = b_ptr + (step.to(tl.int64) * b_depth)[:, None] + (column * b_row)[None, :]
    deep = tl.full((), DEPTH, tl.int64)
    SUM: tl.constexpr = tl.float64 if FLOAT64 else tl.float32
    total = tl.zeros((ROWS, COLUMNS), SUM)
    for turn in range(turns):
        if EVEN:
            a, b = tl.load(a_at), tl.load(b_at)
        else:
            inside = step < k - turn * DEPTH
            a = tl.load(a_at, mask=(row < m) & inside[None, :], other=0.0)
            b = tl.load(b_at, mask=inside[:, None] & (column < n)[None, :], other=0.0)
        if FLOAT64:
            a, b = a.to(SUM), b.to(SUM)
        total = tl.dot(a, b, total, input_precision="ieee", out_dtype=SUM)
        a_at += deep * a_depth
        b_at += deep * b_depth
    if BIAS:
        total += tl.load(bias_ptr + column * bias_step, mask=column < n, other=0).to(SUM)[None, :]
    out_at, out = out_ptr + row * n + column[None, :], total.to(out_ptr.dtype.element_ty)
    if EVEN:
        tl.store(out_at, out)
    else:
        tl.store(out_at, out, mask=(row < m) & (column < n)[None, :])


@triton.jit
def _put(total, out_desc, bias_ptr, n, bias_step, row, column, COLUMNS: tl.constexpr, BIAS: tl.constexpr):
    """A part of a tile."""
    if BIAS:
        columns = column + tl.arange(0, COLUMNS)
        total += tl.load(bias_ptr + columns * bias_step, mask=columns < n, other=0).to(tl.float32)[None, :]
    out_desc.store([row, column], total.to(out_desc.dtype))


@triton.jit
def _products_by_descriptors(
    a_desc, b_desc, out_desc, bias_ptr, n, bias_step, tiles, down, across, turns,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, BIAS: tl.constexpr,
):  # fmt: skip
    """One program for each multiprocessor, tile after tile."""
    HALF: tl.constexpr = COLUMNS // 2
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
        tile_row, tile_column = _place(tile, down, across)
        row, column = tile_row * ROWS, tile_column * COLUMNS
        total = tl.zeros((ROWS, COLUMNS), tl.float32)
        for turn in range(turns):
            a, b = a_desc.load([row, turn * DEPTH]), b_desc.load([column, turn * DEPTH])
            total = tl.dot(a, b.T, total)
        # Stored in halves, for which less shared memory is kept.
        left, right = total.reshape(ROWS, 2, HALF).permute(0, 2, 1).split()
        _put(left, out_desc, bias_ptr, n, bias_step, row, column, HALF, BIAS)
        _put(right, out_desc, bias_ptr, n, bias_step, row, column + HALF, HALF, BIAS)


@triton.jit
def _products_64(
    a_ptr, b_ptr, bias_ptr, out_ptr, m, n, k, a_row, a_depth, b_row, b_depth, bias_step,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, BIAS: tl.constexpr, PAIR: tl.constexpr,
):  # fmt: skip
    """PAIR: numbers are real and imaginary parts side by side, and strides count parts."""
    across = (n - 1) // COLUMNS + 1
    row = (tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    column = (tl.program_id(0) % across * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    a_at = a_ptr + row * a_row
    b_at = b_ptr + column * b_row
    real = tl.zeros((ROWS, COLUMNS), tl.float64)
    imaginary = tl.zeros((ROWS, COLUMNS), tl.float64)
    for _ in range(k):
        a = tl.load(a_at, mask=row < m, other=0).to(tl.float64)[:, None]
        b = tl.load(b_at, mask=column < n, other=0).to(tl.float64)[None, :]
        real += a * b
        if PAIR:
            a_imaginary = tl.load(a_at + 1, mask=row < m, other=0).to(tl.float64)[:, None]
            b_imaginary = tl.load(b_at + 1, mask=column < n, other=0).to(tl.float64)[None, :]
            real -= a_imaginary * b_imaginary
            imaginary += a * b_imaginary + a_imaginary * b
        a_at += a_depth
        b_at += b_depth
    if BIAS:
        real += tl.load(bias_ptr + column * bias_step, mask=column < n, other=0).to(tl.float64)[None, :]
        if PAIR:
            imaginary += tl.load(bias_ptr + column * bias_step + 1, mask=column < n, other=0).to(tl.float64)[None, :]
    inside = (row < m)[:, None] & (column < n)[None, :]
    at = ((row * n)[:, None] + column[None, :]) * (2 if PAIR else 1)
    tl.store(out_ptr + at, real.to(out_ptr.dtype.element_ty), mask=inside)
    if PAIR:
        tl.store(out_ptr + at + 1, imaginary.to(out_ptr.dtype.element_ty), mask=inside)


def _by_descriptors(a, b, bias, out, m, n, k, bias_step, biased):
    """Whether this was done: it takes large products of 16-bit numbers, 16-byte boundaries, and a GPU."""
    rows, columns, depth = 128, 256, 64
    down, across = triton.cdiv(m, rows), triton.cdiv(n, columns)
    if not a.is_cuda or a.element_size() != 2 or m < rows or n < columns or k < 512 or max(m, n, k) >= 1 << 30:
        return False
    for each in (a, b):
        down_step, step = each.stride()
        if step != 1 or down_step % 8 or not k <= down_step < 1 << 31 or each.data_ptr() % 16:
            return False
    if n % 8 or not 110 <= down * across < 1 << 30:
        return False
    first = TensorDescriptor(a, [m, k], [a.stride(0), 1], [rows, depth])
    second = TensorDescriptor(b, [n, k], [b.stride(0), 1], [columns, depth])
    result = TensorDescriptor(out, [m, n], [n, 1], [rows, columns // 2])
    _products_by_descriptors[(min(down * across, 132),)](
        first, second, result, bias, n, bias_step, down * across, down, across, triton.cdiv(k, depth),
        ROWS=rows, COLUMNS=columns, DEPTH=depth, BIAS=biased, num_warps=8, num_stages=4,
    )  # fmt: skip
    return True


def _tiles(m, n, k, x):
    """ROWS, COLUMNS, DEPTH, warps, stages: on a device what its registers hold, in the interpreter few programs."""
    if not x.is_cuda:
        return *(max(16, min(256, triton.next_power_of_2(size))) for size in (m, n, k)), 4, 3
    large = m > 64 and n >= 128 and triton.cdiv(m, 128) * triton.cdiv(n, 128) >= 100
    if x.element_size() == 4:
        return (128, 128, 16, 8, 3) if large else (16, 64, 32, 4, 3) if m <= 16 else (64, 64, 16, 4, 3)
    depth = 64 if k > 32 else max(16, triton.next_power_of_2(k))
    if m <= 16 and n > 25600 and k % 128 == 0 and k >= 1024:
        # Longer pieces of the weight's rows at a time, in as much shared memory: all programs run at once.
        return 16, 64, 128, 4, 3
    if m <= 32:
        return max(16, triton.next_power_of_2(m)), 32 if m <= 16 and n <= 25600 else 64, depth, 4, 5
    return (128, 128, depth, 8, 4) if large else (64, 64, depth, 4, 4)


def linear(input, weight, bias=None):
    """input (..., k), weight (n, k), bias (n): (..., n), row-major; without the last dimension where weight is (k)."""
    k, lead = weight.shape[-1], input.shape[:-1]
    m, n = lead.numel(), weight.shape[0] if weight.ndim > 1 else 1
    out = torch.empty((*lead, n) if weight.ndim > 1 else lead, dtype=input.dtype, device=input.device)
    if out.numel() == 0:
        return out
    pair, biased = out.is_complex(), bias is not None
    a, b = input.reshape(m, k), weight.reshape(n, k)
    # Without a bias the result stands in for it, and is not read.
    c, y = bias.reshape(-1).expand(n) if biased else out, out
    if pair:
        a, b, c, y = (torch.view_as_real(each.resolve_conj()) for each in (a, b, c, y))
    bias_step = c.stride(0) if biased else 0
    operands = a, b, c, y, m, n, k, *a.stride()[:2], *b.stride()[:2], bias_step
    if pair or out.dtype == torch.float64:
        rows, columns = min(32, triton.next_power_of_2(m)), min(64, triton.next_power_of_2(n))
        grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns),)
        _products_64[grid](*operands, ROWS=rows, COLUMNS=columns, BIAS=biased, PAIR=pair)
        return out
    if _by_descriptors(a, b, c, y, m, n, k, bias_step, biased):
        return out
    rows, columns, depth, warps, stages = _tiles(m, n, k, out)
    float64 = out.element_size() == 4 and not (m % 64 or n % 128 or k % 16) and m * n >= 64 * 128 * 66
    if float64:
        rows, columns, depth, warps, stages = 64, 128, 16, 8, 3
    down, across = triton.cdiv(m, rows), triton.cdiv(n, columns)
    # 128 registers leave room for two programs on a multiprocessor.
    _products[(down * across,)](
        *operands, triton.cdiv(k, depth), down, across, ROWS=rows, COLUMNS=columns, DEPTH=depth,
        EVEN=not (m % rows or n % columns or k % depth), FLOAT64=float64, BIAS=biased,
        num_warps=warps, num_stages=stages, maxnreg=128 if float64 else None,
    )  # fmt: skip
    return out
