"""fused_add_rms_norm: the residual grows by the input, and the input becomes its rows over their root mean square.

The sum is kept in float32 for the squares and the result, and rounded once for the residual.
"""

import triton
import triton.language as tl


@triton.jit
def _add_and_norm(
    x_ptr, residual_ptr, weight_ptr, rows, n, x_stride, epsilon,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """ROWS rows; with WHOLE a row fits into BLOCK and stays in registers, else its new residual is read again."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    if WHOLE:
        inside = (row < rows) & (column < n)
        x = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
        total = x + tl.load(residual_ptr + row * n + column, mask=inside, other=0.0).to(tl.float32)
        tl.store(residual_ptr + row * n + column, total.to(residual_ptr.dtype.element_ty), mask=inside)
        weight = tl.load(weight_ptr + column, mask=column < n, other=0.0).to(tl.float32)
        scale = 1.0 / tl.sqrt(tl.sum(total * total, axis=1) / n + epsilon)
        y = total * scale[:, None] * weight
        tl.store(x_ptr + row * x_stride + column, y.to(x_ptr.dtype.element_ty), mask=inside)
    else:
        squares = tl.zeros((ROWS, BLOCK), tl.float32)
        for first in range(0, n, BLOCK):
            inside = (row < rows) & (first + column < n)
            x = tl.load(x_ptr + row * x_stride + first + column, mask=inside, other=0.0).to(tl.float32)
            total = x + tl.load(residual_ptr + row * n + first + column, mask=inside, other=0.0).to(tl.float32)
            tl.store(residual_ptr + row * n + first + column, total.to(residual_ptr.dtype.element_ty), mask=inside)
            squares += total * total
        scale = 1.0 / tl.sqrt(tl.sum(squares, axis=1) / n + epsilon)
        for first in range(0, n, BLOCK):
            # Every thread reads what it has written itself: both loops cut a row alike.
            inside = (row < rows) & (first + column < n)
            total = tl.load(residual_ptr + row * n + first + column, mask=inside, other=0.0).to(tl.float32)
            weight = tl.load(weight_ptr + first + column, mask=first + column < n, other=0.0).to(tl.float32)
            y = total * scale[:, None] * weight
            tl.store(x_ptr + row * x_stride + first + column, y.to(x_ptr.dtype.element_ty), mask=inside)


def fused_add_rms_norm(input, residual, weight, epsilon):
    """input: (..., n) with rows of neighbouring words at an even distance; residual: (..., n), dense; weight: (n,)."""
    n = input.shape[-1]
    x = input.view(-1, n)
    block = triton.next_power_of_2(n)
    tile = 2048 if x.is_cuda else 1 << 18
    rows = max(1, min(tile // block, triton.next_power_of_2(x.shape[0])))
    whole = block <= 16384
    _add_and_norm[(triton.cdiv(x.shape[0], rows),)](
        x, residual, weight, x.shape[0], n, x.stride(0), float(epsilon),
        ROWS=rows, BLOCK=block if whole else 16384, WHOLE=whole,
        num_warps=max(1, min(16, rows * block // 512)),
    )  # fmt: skip
