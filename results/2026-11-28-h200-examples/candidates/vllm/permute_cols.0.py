"""permute_cols: columns of a matrix of 16-bit elements in another order.

A row that fits goes into shared memory as it lies and is gathered there, so that device memory is only walked along;
of many rows, two lie in one word of 32 bits. Other rows are gathered from device memory.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _gather_shared(
    a_ptr, order_ptr, out_ptr, rows, n, programs, order_stride, COLUMNS: tl.constexpr, TWO: tl.constexpr
):
    """Every ``programs``-th row, or pair of rows with TWO; COLUMNS: n's next power of two."""
    j = tl.arange(0, COLUMNS)
    inside = j < n
    order = tl.load(order_ptr + j * order_stride, mask=inside, other=0)
    if TWO:
        for row in range(tl.program_id(0) * 2, rows, programs * 2):
            first = row.to(tl.int64) * n
            both = inside & (row + 1 < rows)
            low = tl.load(a_ptr + first + j, mask=inside, other=0).to(tl.int32)
            high = tl.load(a_ptr + first + n + j, mask=both, other=0).to(tl.int32)
            pair = tl.gather((low & 0xFFFF) | (high << 16), order, 0)
            tl.store(out_ptr + first + j, pair.to(tl.int16), mask=inside)
            tl.store(out_ptr + first + n + j, (pair >> 16).to(tl.int16), mask=both)
    else:
        first = tl.program_id(0).to(tl.int64) * n
        x = tl.load(a_ptr + first + j, mask=inside, other=0).to(tl.int32)
        tl.store(out_ptr + first + j, tl.gather(x, order, 0).to(tl.int16), mask=inside)


@triton.jit
def _gather(a_ptr, order_ptr, out_ptr, n, blocks, order_stride, BLOCK: tl.constexpr):
    first = (tl.program_id(0) // blocks).to(tl.int64) * n
    j = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    order = tl.load(order_ptr + j * order_stride, mask=j < n, other=0)
    tl.store(out_ptr + first + j, tl.load(a_ptr + first + order, mask=j < n, other=0), mask=j < n)


def permute_cols(A, perm):
    """A: (rows, n), dense, 16-bit; perm: (n,) int32. Returns A[:, perm]."""
    rows, n = A.shape
    out = torch.empty((rows, n), dtype=A.dtype, device=A.device)
    if rows == 0 or n == 0:
        return out
    a, o = A.view(torch.int16), out.view(torch.int16)
    columns = triton.next_power_of_2(n)
    if not 256 <= columns <= 32768:
        block = min(1024, columns)
        blocks = triton.cdiv(n, block)
        _gather[(rows * blocks,)](a, perm, o, n, blocks, perm.stride(0), BLOCK=block, num_warps=4)
        return out
    warps = max(1, min(32, columns // 512))
    two = rows >= 264
    # As many programs as 132 multiprocessors hold at once: each loads the order of the columns only once.
    programs = min((rows + 1) // 2, 132 * max(1, min(8, 32 // warps))) if two else rows
    _gather_shared[(programs,)](
        a, perm, o, rows, n, programs, perm.stride(0), COLUMNS=columns, TWO=two, num_warps=warps
    )
    return out
