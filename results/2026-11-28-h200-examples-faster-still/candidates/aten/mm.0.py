"""mm: a matrix product, tile by tile, summed in float32 (exact products for float32) and rounded once.

Large products of float32 are formed by the tensor cores in float64, as fast as float32 is elsewhere; large matrices of
16 bits come and go by tensor descriptors, which read zeros outside of them.
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
def _mm(
    a_ptr, b_ptr, out_ptr, m, n, k, turns, down, across, a_row, a_depth, b_depth, b_column,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, EVEN: tl.constexpr, FLOAT64: tl.constexpr,
):  # fmt: skip
    """A tile of out (m, n) = a (m, k) @ b (k, n), operands of any strides. EVEN: tiles leave no rest."""
    tile_row, tile_column = _place(tl.program_id(0), down, across)
    row = (tile_row.to(tl.int64) * ROWS + tl.arange(0, ROWS))[:, None]
    column = (tile_column.to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    step = tl.arange(0, DEPTH)
    a_at = a_ptr + row * a_row + step.to(tl.int64)[None, :] * a_depth
    b_at = b_ptr + step.to(tl.int64)[:, None] * b_depth + column * b_column
    deep = tl.full((), DEPTH, tl.int64)
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
    out = total.to(out_ptr.dtype.element_ty)
    if EVEN:
        tl.store(out_ptr + row * n + column, out)
    else:
        tl.store(out_ptr + row * n + column, out, mask=(row < m) & (column < n))


@triton.jit
def _tile(
    a_desc, b_desc, out_desc, tile, down, across, turns, A_TURNED: tl.constexpr, B_TURNED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """TURNED: memory holds the transpose. Stored in halves, for which less shared memory is kept."""
    tile_row, tile_column = _place(tile, down, across)
    row, column = tile_row * ROWS, tile_column * COLUMNS
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for turn in range(turns):
        first = turn * DEPTH
        a = a_desc.load([first, row]).T if A_TURNED else a_desc.load([row, first])
        b = b_desc.load([column, first]).T if B_TURNED else b_desc.load([first, column])
        total = tl.dot(a, b, total)
    left, right = total.reshape(ROWS, 2, COLUMNS // 2).permute(0, 2, 1).split()
    out_desc.store([row, column], left.to(out_desc.dtype))
    out_desc.store([row, column + COLUMNS // 2], right.to(out_desc.dtype))


@triton.jit
def _mm_by_descriptors(
    a_desc, b_desc, out_desc, tiles, down, across, turns,
    WALK: tl.constexpr, A_TURNED: tl.constexpr, B_TURNED: tl.constexpr,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """A tile, or WALK: one program for each multiprocessor, tile after tile."""
    if WALK:
        for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=True):
            _tile(a_desc, b_desc, out_desc, tile, down, across, turns, A_TURNED, B_TURNED, ROWS, COLUMNS, DEPTH)
    else:
        tile = tl.program_id(0)
        _tile(a_desc, b_desc, out_desc, tile, down, across, turns, A_TURNED, B_TURNED, ROWS, COLUMNS, DEPTH)


def _descriptor(x, block):
    """Of a matrix of 16-bit numbers, and whether memory holds its transpose; None where the hardware cannot read it."""
    for turned, each in enumerate((x, x.t())):
        step = each.stride(0)
        if each.stride(1) == 1 and step % 8 == 0 and each.shape[1] <= step < 1 << 31 and x.data_ptr() % 16 == 0:
            return TensorDescriptor(each, list(each.shape), [step, 1], block[::-1] if turned else block), bool(turned)
    return None


def _by_descriptors(a, b, out, m, n, k):
    """Whether this was done: it takes large products of 16-bit numbers, 16-byte boundaries, and a GPU."""
    rows, columns, depth = 128, 256, 64
    down, across = triton.cdiv(m, rows), triton.cdiv(n, columns)
    if not a.is_cuda or a.element_size() != 2 or m < rows or n < columns or k < 512 or max(m, n, k) >= 1 << 30:
        return False
    first, second = _descriptor(a, [rows, depth]), _descriptor(b, [depth, columns])
    if first is None or second is None or n % 8 or not 110 <= down * across < 1 << 30:
        return False
    result = TensorDescriptor(out, [m, n], [n, 1], [rows, columns // 2])
    _mm_by_descriptors[(min(down * across, 132),)](
        first[0], second[0], result, down * across, down, across, triton.cdiv(k, depth), WALK=down * across > 132,
        A_TURNED=first[1], B_TURNED=second[1], ROWS=rows, COLUMNS=columns, DEPTH=depth, num_warps=8, num_stages=4,
    )  # fmt: skip
    return True


def _tiles(m, n, k, x):
    """ROWS, COLUMNS, DEPTH, warps, stages: on a device what its registers hold, in the interpreter few programs."""
    if not x.is_cuda:
        return *(max(16, min(512, triton.next_power_of_2(size))) for size in (m, n, k)), 4, 1
    if x.element_size() == 4:
        if m * n >= 128 * 128 * 132 and min(m, n) > 64:
            return 128, 128, 16, 8, 3
        return (64, 64, 16, 4, 3) if m * n >= 64 * 64 * 64 and min(m, n) > 32 else (32, 32, 32, 4, 2)
    if m * n >= 128 * 128 * 100 and min(m, n) > 64:
        return 128, 128, 64, 4, 3
    if m * n >= 64 * 64 * 32 and min(m, n) > 32:
        return 64, 64, 64, 4, 4
    return (32, 32, 64, 4, 3) if max(m, n) > 16 else (16, 16, 256, 4, 1)


def mm(self, mat2):
    """self (m, k) @ mat2 (k, n), any strides, contiguous result of the same dtype; zeros where k is 0."""
    (m, k), n = self.shape, mat2.shape[1]
    out = torch.empty((m, n), dtype=self.dtype, device=self.device)
    if out.numel() == 0 or _by_descriptors(self, mat2, out, m, n, k):
        return out
    rows, columns, depth, warps, stages = _tiles(m, n, k, self)
    float64 = self.element_size() == 4 and not (m % 64 or n % 128 or k % 16) and m * n >= 64 * 128 * 66
    if float64:
        rows, columns, depth, warps, stages = 64, 128, 16, 8, 3
    down, across = triton.cdiv(m, rows), triton.cdiv(n, columns)
    # 128 registers leave room for two programs on a multiprocessor.
    _mm[(down * across,)](
        self, mat2, out, m, n, k, triton.cdiv(k, depth), down, across, *self.stride(), *mat2.stride(),
        ROWS=rows, COLUMNS=columns, DEPTH=depth, EVEN=not (m % rows or n % columns or k % depth), FLOAT64=float64,
        num_warps=warps, num_stages=stages, maxnreg=128 if float64 else None,
    )  # fmt: skip
    return out
