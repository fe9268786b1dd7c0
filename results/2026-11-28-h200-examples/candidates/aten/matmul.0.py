"""matmul: tiles by tensor memory access where memory allows it, by pointers elsewhere; vectors by sums along rows.

Products are summed in float32, with exact products for float32, and rounded once. float64 and complex numbers are
summed one product at a time. Batches are broadcast by strides of 0, and join the rows where other has none.
"""

import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def _place(batch, sizes, strides, DIMS: tl.constexpr):
    """Where a batch begins."""
    at = batch * 0
    for back in tl.static_range(1, DIMS + 1):
        at += batch % sizes[DIMS - back] * strides[DIMS - back]
        batch = batch // sizes[DIMS - back]
    return at


@triton.jit
def _grouped(pid, down, across, GROUP: tl.constexpr):
    """Programs that run at the same time share tiles: GROUP tiles down before one step across."""
    band = pid // (GROUP * across)
    height = tl.minimum(down - band * GROUP, GROUP)
    return band * GROUP + pid % (GROUP * across) % height, pid % (GROUP * across) // height


@triton.jit
def _mm_by_descriptors(
    a_desc, b_desc, out_desc, m, n, k, A_TURNED: tl.constexpr, B_TURNED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, OUT: tl.constexpr,
):  # fmt: skip
    """One matrix each of 16-bit numbers. TURNED: memory holds the transpose."""
    tile_row, tile_column = _grouped(tl.program_id(0), (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1, GROUP)
    row, column = tile_row * ROWS, tile_column * COLUMNS
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, k, DEPTH):
        a = a_desc.load([first, row]).T if A_TURNED else a_desc.load([row, first])
        b = b_desc.load([column, first]).T if B_TURNED else b_desc.load([first, column])
        total = tl.dot(a, b, total)
    out_desc.store([row, column], total.to(OUT))


@triton.jit
def _mm(
    a_ptr, b_ptr, out_ptr, m, n, k, a_row, a_depth, b_depth, b_column, sizes, a_strides, b_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr,
    EVEN: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """EVEN: k is a multiple of DEPTH. WIDEN: the interpreter has no 16-bit dot."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    tile_row, tile_column = _grouped(tl.program_id(0) % (down * across), down, across, GROUP)
    row = (tile_row * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = (tile_column * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)[None, :]
    step = tl.arange(0, DEPTH).to(tl.int64)
    deep = tl.full((), DEPTH, tl.int64)
    a_at = a_ptr + _place(batch, sizes, a_strides, DIMS) + row * a_row + step[None, :] * a_depth
    b_at = b_ptr + _place(batch, sizes, b_strides, DIMS) + step[:, None] * b_depth + column * b_column
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, k, DEPTH):
        if EVEN:
            a = tl.load(a_at, mask=row < m, other=0.0)
            b = tl.load(b_at, mask=column < n, other=0.0)
        else:
            a = tl.load(a_at, mask=(row < m) & (first + step < k)[None, :], other=0.0)
            b = tl.load(b_at, mask=(first + step < k)[:, None] & (column < n), other=0.0)
        if WIDEN:
            a, b = a.to(tl.float32), b.to(tl.float32)
        total = tl.dot(a, b, total, input_precision="ieee")
        a_at += deep * a_depth
        b_at += deep * b_depth
    out_at = out_ptr + (batch * m + row) * n + column
    tl.store(out_at, total.to(out_ptr.dtype.element_ty), mask=(row < m) & (column < n))


@triton.jit
def _mm_by_products(
    a_ptr, b_ptr, out_ptr, m, n, k, a_row, a_depth, b_depth, b_column, sizes, a_strides, b_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, PAIR: tl.constexpr,
):  # fmt: skip
    """float64, or a PAIR of parts for each complex number; strides then count parts."""
    down, across = (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1
    batch = (tl.program_id(0) // (down * across)).to(tl.int64)
    tile = tl.program_id(0) % (down * across)
    row = (tile // across * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = (tile % across * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)[None, :]
    a_at = a_ptr + _place(batch, sizes, a_strides, DIMS) + row * a_row
    b_at = b_ptr + _place(batch, sizes, b_strides, DIMS) + column * b_column
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
    a_ptr, x_ptr, out_ptr, m, k, a_row, a_depth, x_step, sizes, a_strides, x_strides,
    DIMS: tl.constexpr, ROWS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A matrix (m, k) times a vector, both float32 or less."""
    down = (m - 1) // ROWS + 1
    batch = (tl.program_id(0) // down).to(tl.int64)
    row = (tl.program_id(0) % down * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    step = tl.arange(0, DEPTH).to(tl.int64)
    deep = tl.full((), DEPTH, tl.int64)
    a_at = a_ptr + _place(batch, sizes, a_strides, DIMS) + row[:, None] * a_row + step[None, :] * a_depth
    x_at = x_ptr + _place(batch, sizes, x_strides, DIMS) + step * x_step
    total = tl.zeros((ROWS, DEPTH), tl.float32)
    for first in range(0, k, DEPTH):
        a = tl.load(a_at, mask=(row < m)[:, None] & (first + step < k)[None, :], other=0.0).to(tl.float32)
        x = tl.load(x_at, mask=first + step < k, other=0.0).to(tl.float32)
        total += a * x[None, :]
        a_at += deep * a_depth
        x_at += deep * x_step
    y = tl.sum(total, axis=1)
    tl.store(out_ptr + batch * m + row, y.to(out_ptr.dtype.element_ty), mask=row < m)


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


def _descriptor(x, rows, columns, steps, block):
    """Of a matrix of 16-bit numbers, and whether memory holds its transpose; None where the hardware cannot read it."""
    (down, across), aligned = steps, x.data_ptr() % 16 == 0
    if aligned and across == 1 and down >= columns and down % 8 == 0:
        return TensorDescriptor(x, [rows, columns], [down, 1], list(block)), False
    if aligned and down == 1 and across >= rows and across % 8 == 0:
        return TensorDescriptor(x, [columns, rows], [across, 1], list(block)[::-1]), True
    return None


def _by_descriptors(a, b, out, m, n, k, a_steps, b_steps):
    """Whether this was done: it takes large matrices, 16-byte boundaries, and a GPU."""
    if not (a.is_cuda and a.element_size() == 2 and m >= 256 and n >= 256 and k >= 128 and n % 8 == 0):
        return False
    rows, columns, depth = 128, 256, 64
    if triton.cdiv(m, rows) * triton.cdiv(n, columns) < 132:
        columns = 128
    first = _descriptor(a, m, k, a_steps, (rows, depth))
    second = _descriptor(b, k, n, b_steps, (depth, columns))
    result = _descriptor(out, m, n, (n, 1), (rows, columns))
    if first is None or second is None or result is None:
        return False
    _mm_by_descriptors[(triton.cdiv(m, rows) * triton.cdiv(n, columns),)](
        first[0], second[0], result[0], m, n, k, A_TURNED=first[1], B_TURNED=second[1],
        ROWS=rows, COLUMNS=columns, DEPTH=depth, GROUP=8,
        OUT=tl.float16 if out.dtype == torch.float16 else tl.bfloat16,
        num_warps=8 if columns == 256 else 4, num_stages=3,
    )  # fmt: skip
    return True


def _by_rows(a, x, out, batches, m, k, a_steps, x_step, batch):
    if a_steps[0] == 1 and a_steps[1] != 1 and m > 1:
        rows, depth = (max(16, min(most, triton.next_power_of_2(size))) for most, size in ((128, m), (64, k)))
    else:
        rows = 8 if m >= 2048 else 2 if m >= 256 else 1
        most = (8192 // rows if rows > 1 else 4096) // (2 if a.element_size() == 4 else 1)
        depth = max(32, min(most, triton.next_power_of_2(k)))
    rows = rows if out.is_cuda else min(256, triton.next_power_of_2(m))
    _mv[(triton.cdiv(m, rows) * batches,)](
        a, x, out, m, k, *a_steps, x_step, *batch, DIMS=len(batch[0]), ROWS=rows, DEPTH=depth
    )  # fmt: skip


def _by_tiles(a, b, out, batches, m, n, k, steps, batch):
    most = 128 if out.is_cuda else 512
    rows, columns = (max(16, min(most, triton.next_power_of_2(size))) for size in (m, n))
    if out.element_size() == 4 and triton.cdiv(m, rows) * triton.cdiv(n, columns) * batches < 132:
        rows, columns = min(rows, 64), min(columns, 64)
    depth = 16 if out.element_size() == 4 else 64 if k > 32 else max(16, triton.next_power_of_2(k))
    small = out.element_size() == 2 and rows * columns <= 32 * 32
    _mm[(triton.cdiv(m, rows) * triton.cdiv(n, columns) * batches,)](
        a, b, out, m, n, k, *steps, *batch, DIMS=len(batch[0]), ROWS=rows, COLUMNS=columns, DEPTH=depth, GROUP=8,
        EVEN=k % depth == 0, WIDEN=not out.is_cuda and out.element_size() == 2,
        num_warps=8 if rows * columns >= 128 * 128 else 2 if small else 4, num_stages=3,
    )  # fmt: skip


def matmul(self, other):
    """A row-major tensor of the operands' dtype; a vector counts as a row on the left and as a column on the right."""
    a = self.unsqueeze(0) if self.ndim == 1 else self
    b = other.unsqueeze(1) if other.ndim == 1 else other
    (m, k), n = a.shape[-2:], b.shape[-1]
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*lead, *([m] if self.ndim > 1 else []), *([n] if other.ndim > 1 else []))
    out = torch.empty(shape, dtype=self.dtype, device=self.device)
    if out.numel() == 0 or k == 0:
        return out.zero_()
    a, b = a.expand(*lead, m, k), b.expand(*lead, k, n)
    pair, y = out.is_complex(), out
    if pair:
        a, b, y = (torch.view_as_real(each.resolve_conj()) for each in (a, b, out))
    dims = len(lead)
    # In the order of the result, so that a batch's number says where it goes.
    order = [math.prod(lead[each + 1 :]) for each in range(dims)]
    sizes, a_strides, b_strides, _ = _merged(lead, a.stride()[:dims], b.stride()[:dims], order)
    a_steps, b_steps = a.stride()[dims : dims + 2], b.stride()[dims : dims + 2]
    batches = math.prod(sizes)
    if b_strides == (0,) and sizes != (1,) and (m == 1 or a_strides[0] == a_steps[0] * m):
        # One matrix for all batches: they are more rows.
        a_steps = (a_strides[0] if m == 1 else a_steps[0], a_steps[1])
        m, batches, sizes, a_strides = m * batches, 1, (1,), (0,)
    if m == 1:
        # The stride of one row does not matter; this one suits more ways.
        a_steps = (k if a_steps[1] == 1 else 1, a_steps[1])
    if n == 1:
        b_steps = (b_steps[0], 1 if b_steps[0] != 1 else k)
    batch = sizes, a_strides, b_strides
    if pair or out.dtype == torch.float64:
        rows, columns = (max(16, min(most, triton.next_power_of_2(size))) for most, size in ((32, m), (64, n)))
        _mm_by_products[(triton.cdiv(m, rows) * triton.cdiv(n, columns) * batches,)](
            a, b, y, m, n, k, *a_steps, *b_steps, *batch, DIMS=len(sizes), ROWS=rows, COLUMNS=columns, PAIR=pair
        )  # fmt: skip
    elif n == 1:
        _by_rows(a, b, out, batches, m, k, a_steps, b_steps[0], batch)
    elif m == 1:
        _by_rows(b, a, out, batches, n, k, b_steps[::-1], a_steps[1], (sizes, b_strides, a_strides))
    elif batches > 1 or not _by_descriptors(a, b, out, m, n, k, a_steps, b_steps):
        _by_tiles(a, b, out, batches, m, n, k, (*a_steps, *b_steps), batch)
    return out
