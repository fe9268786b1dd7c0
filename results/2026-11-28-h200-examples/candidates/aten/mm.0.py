"""mm: a matrix product, tile by tile, summed in float32 (exact float32 products for float32) and rounded once."""

import torch
import triton
import triton.language as tl


@triton.jit
def _mm(
    a_ptr, b_ptr, out_ptr, m, n, k, a_row, a_depth, b_depth, b_column,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, WIDEN: tl.constexpr,
):  # fmt: skip
    """A tile of out (m, n) = a (m, k) @ b (k, n), operands of any strides. WIDEN: the interpreter has no 16-bit dot."""
    # Not tl.cdiv, whose sum may leave 32 bits.
    down, across = (m - 1) // ROWS + 1, (n - 1) // COLUMNS + 1
    # Programs that run at the same time share tiles of a and b: GROUP tiles down before one step across.
    band = tl.program_id(0) // (GROUP * across)
    height = tl.minimum(down - band * GROUP, GROUP)
    tile_row = band * GROUP + tl.program_id(0) % (GROUP * across) % height
    tile_column = tl.program_id(0) % (GROUP * across) // height
    row = (tile_row * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = (tile_column * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)[None, :]
    step = tl.arange(0, DEPTH).to(tl.int64)
    deep = tl.full((), DEPTH, tl.int64)
    # Rows and columns beyond the edge read those of the other edge, so that only the depth needs a mask.
    a_at = a_ptr + row % m * a_row + step[None, :] * a_depth
    b_at = b_ptr + step[:, None] * b_depth + column % n * b_column
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for first in range(0, k, DEPTH):
        a = tl.load(a_at, mask=first + step[None, :] < k, other=0.0)
        b = tl.load(b_at, mask=first + step[:, None] < k, other=0.0)
        if WIDEN:
            a, b = a.to(tl.float32), b.to(tl.float32)
        total = tl.dot(a, b, total, input_precision="ieee")
        a_at += deep * a_depth
        b_at += deep * b_depth
    inside = (row < m) & (column < n)
    tl.store(out_ptr + row * n + column, total.to(out_ptr.dtype.element_ty), mask=inside)


def _tiles(m, n, k, x):
    """ROWS, COLUMNS, DEPTH, warps: on a device what its registers hold, in the interpreter few programs."""
    if not x.is_cuda:
        return *(max(16, min(512, triton.next_power_of_2(size))) for size in (m, n, k)), 4
    large = m * n >= 1024 * 1024
    if x.element_size() == 2:
        return (128, 128, 64, 8) if large else (64, 64, 64, 4)
    return (128, 128, 16, 4) if large else (32, 64, 32, 4)


def mm(self, mat2):
    """self (m, k) @ mat2 (k, n), any strides, contiguous result of the same dtype; zeros where k is 0."""
    (m, k), n = self.shape, mat2.shape[1]
    out = torch.empty((m, n), dtype=self.dtype, device=self.device)
    if out.numel() == 0:
        return out
    rows, columns, depth, warps = _tiles(m, n, k, self)
    _mm[(triton.cdiv(m, rows) * triton.cdiv(n, columns),)](
        self, mat2, out, m, n, k, *self.stride(), *mat2.stride(),
        ROWS=rows, COLUMNS=columns, DEPTH=depth, GROUP=8, WIDEN=not self.is_cuda, num_warps=warps,
    )  # fmt: skip
    return out
