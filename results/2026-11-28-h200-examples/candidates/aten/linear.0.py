"""linear: input @ weight.T + bias, tile by tile, summed in float32 (exact products for float32), rounded once.

float64 and complex numbers are summed one product at a time in float64.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _products(
    a_ptr, b_ptr, bias_ptr, out_ptr, m, n, k, a_row, a_depth, b_row, b_depth, bias_step,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, EVEN: tl.constexpr,
    BIAS: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """a (m, k), b (n, k), out (m, n). EVEN: k is a multiple of DEPTH. WIDEN: the interpreter has no 16-bit dot."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1
    # Programs that run at the same time share tiles of a and b: GROUP tiles down before one step across.
    band = tl.program_id(0) // (GROUP * across)
    height = tl.minimum(down - band * GROUP, GROUP)
    tile_row = band * GROUP + tl.program_id(0) % (GROUP * across) % height
    tile_column = tl.program_id(0) % (GROUP * across) // height
    row = (tile_row * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    column = (tile_column * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)
    step = tl.arange(0, DEPTH).to(tl.int64)
    deep = tl.full((), DEPTH, tl.int64)
    # Rows beyond the edge read those of the other edge, so that only the depth needs a mask.
    a_at = a_ptr + (row % m * a_row)[:, None] + (step * a_depth)[None, :]
    b_at = b_ptr + (step * b_depth)[:, None] + (column % n * b_row)[None, :]
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, k, DEPTH):
        if EVEN:
            a, b = tl.load(a_at), tl.load(b_at)
        else:
            a = tl.load(a_at, mask=(first + step < k)[None, :], other=0.0)
            b = tl.load(b_at, mask=(first + step < k)[:, None], other=0.0)
        if WIDEN:
            a, b = a.to(tl.float32), b.to(tl.float32)
        total = tl.dot(a, b, total, input_precision="ieee")
        a_at += deep * a_depth
        b_at += deep * b_depth
    if BIAS:
        total += tl.load(bias_ptr + column * bias_step, mask=column < n, other=0).to(tl.float32)[None, :]
    inside = (row < m)[:, None] & (column < n)[None, :]
    tl.store(out_ptr + (row * n)[:, None] + column[None, :], total.to(out_ptr.dtype.element_ty), mask=inside)


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


def _tiles(m, n, k, x):
    """ROWS, COLUMNS, DEPTH, warps, stages: on a device what its registers hold, in the interpreter few programs."""
    if not x.is_cuda:
        return *(max(16, min(256, triton.next_power_of_2(size))) for size in (m, n, k)), 4, 3
    if x.element_size() == 4:
        if m >= 128 and n >= 128 and triton.cdiv(m, 128) * triton.cdiv(n, 128) >= 100:
            return 128, 128, 16, 8, 3
        return (16, 64, 32, 4, 3) if m <= 16 else (64, 64, 16, 4, 3)
    depth = 64 if k > 32 else max(16, triton.next_power_of_2(k))
    if m <= 32:
        return max(16, triton.next_power_of_2(m)), 32 if m <= 16 and n <= 4096 else 64, depth, 4, 5
    if m > 64 and triton.cdiv(m, 128) * triton.cdiv(n, 256) >= 132:
        return 128, 256, depth, 8, 4
    if m > 64 and triton.cdiv(m, 128) * triton.cdiv(n, 128) >= 100:
        return 128, 128, depth, 8, 4
    return 64, 64, depth, 4, 4


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
    operands = a, b, c, y, m, n, k, *a.stride()[:2], *b.stride()[:2], c.stride(0) if biased else 0
    if pair or out.dtype == torch.float64:
        rows, columns = min(32, triton.next_power_of_2(m)), min(64, triton.next_power_of_2(n))
        grid = (triton.cdiv(m, rows) * triton.cdiv(n, columns),)
        _products_64[grid](*operands, ROWS=rows, COLUMNS=columns, BIAS=biased, PAIR=pair)
        return out
    rows, columns, depth, warps, stages = _tiles(m, n, k, out)
    _products[(triton.cdiv(m, rows) * triton.cdiv(n, columns),)](
        *operands, ROWS=rows, COLUMNS=columns, DEPTH=depth, GROUP=8, EVEN=k % depth == 0, BIAS=biased,
        WIDEN=not out.is_cuda and out.element_size() == 2, num_warps=warps, num_stages=stages,
    )  # fmt: skip
    return out
