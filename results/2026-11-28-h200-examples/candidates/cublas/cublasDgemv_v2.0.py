"""cublasDgemv_v2: y = alpha * op(A) @ x + beta * y in float64, A stored column by column.

op(A) is walked by two strides, so one kernel serves A and its transpose. Its depth is cut into shares, so that a tall
matrix with few columns keeps a device busy too; a second kernel adds the shares up and brings in alpha, beta and y.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _share(
    a_ptr, x_ptr, shares_ptr, rows, depth, per, a_row, a_depth, incx, x_first,
    ROWS: tl.constexpr, DEPTH: tl.constexpr,
):  # fmt: skip
    """shares (share, row): what ``per`` columns of op(A) add to a row."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    first = tl.program_id(1).to(tl.int64) * per
    total = tl.zeros((ROWS, DEPTH), tl.float64)
    for block in range(0, per, DEPTH):
        step = first + block + tl.arange(0, DEPTH)
        inside = (row < rows)[:, None] & (step < depth)[None, :]
        a = tl.load(a_ptr + row[:, None] * a_row + step[None, :] * a_depth, mask=inside, other=0.0)
        x = tl.load(x_ptr + x_first + step * incx, mask=step < depth, other=0.0)
        total += a * x[None, :]
    tl.store(shares_ptr + tl.program_id(1).to(tl.int64) * rows + row, tl.sum(total, axis=1), mask=row < rows)


@triton.jit
def _total(
    shares_ptr, y_ptr, rows, count, alpha: tl.float64, beta: tl.float64, incy, y_first,
    READ_Y: tl.constexpr, ROWS: tl.constexpr,
):  # fmt: skip
    """y = alpha * the sum of ``count`` shares + beta * y."""
    row = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    total = tl.zeros((ROWS,), tl.float64)
    for share in range(count):
        total += tl.load(shares_ptr + share * rows + row, mask=row < rows, other=0.0)
    total *= alpha
    at = y_ptr + y_first + row * incy
    if READ_Y:
        total += beta * tl.load(at, mask=row < rows, other=0.0)
    tl.store(at, total, mask=row < rows)


def _tile(rows, depth, is_plain, is_cuda):
    """ROWS, DEPTH: long where op(A) lies in memory without steps; in the interpreter as few programs as possible."""
    if not is_cuda:
        return triton.next_power_of_2(min(rows, 512)), triton.next_power_of_2(min(depth, 1024))
    return (128, 16) if is_plain else (8, 256)


def cublasDgemv_v2(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
    """A, x, y: 1-D storage; a negative increment walks from the far end: element i is at (i + 1 - length) * inc.

    With beta 0 y is not read, with alpha 0 neither A nor x is, not even their NaNs.
    """
    if m == 0 or n == 0:
        return
    is_plain = trans == "N"
    rows, depth = (m, n) if is_plain else (n, m)
    a_row, a_depth = (1, lda) if is_plain else (lda, 1)
    row_block, depth_block = _tile(rows, depth, is_plain, A.is_cuda)
    blocks = triton.cdiv(rows, row_block)
    wanted = max(1, 1024 // blocks) if A.is_cuda else 1
    per = triton.cdiv(triton.cdiv(depth, wanted), depth_block) * depth_block
    count = triton.cdiv(depth, per) if alpha != 0 else 0
    shares = torch.empty((count, rows), dtype=A.dtype, device=A.device)
    if count:
        x_first = (1 - depth) * incx if incx < 0 else 0
        _share[(blocks, count)](
            A, x, shares, rows, depth, per, a_row, a_depth, incx, x_first,
            ROWS=row_block, DEPTH=depth_block, num_warps=4,
        )  # fmt: skip
    y_first = (1 - rows) * incy if incy < 0 else 0
    _total[(triton.cdiv(rows, 256),)](
        shares, y, rows, count, float(alpha), float(beta), incy, y_first, READ_Y=beta != 0, ROWS=256, num_warps=4
    )
