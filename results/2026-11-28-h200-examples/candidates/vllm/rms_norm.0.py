"""rms_norm: every row divided by its root mean square, times a weight per column.

Squares are summed in float32; the result is rounded once.
"""

import triton
import triton.language as tl


@triton.jit
def _rms_norm(
    out_ptr, x_ptr, weight_ptr, rows, n, x_stride, out_stride, epsilon,
    ROWS: tl.constexpr, BLOCK: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """ROWS rows; with WHOLE a row fits into BLOCK and is read once, else it is read twice."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    if WHOLE:
        inside = (row < rows) & (column < n)
        x = tl.load(x_ptr + row * x_stride + column, mask=inside, other=0.0).to(tl.float32)
        weight = tl.load(weight_ptr + column, mask=column < n, other=0.0).to(tl.float32)
        scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / n + epsilon)
        y = x * scale[:, None] * weight
        tl.store(out_ptr + row * out_stride + column, y.to(out_ptr.dtype.element_ty), mask=inside)
    else:
        squares = tl.zeros((ROWS, BLOCK), tl.float32)
        for first in range(0, n, BLOCK):
            inside = (row < rows) & (first + column < n)
            x = tl.load(x_ptr + row * x_stride + first + column, mask=inside, other=0.0).to(tl.float32)
            squares += x * x
        scale = 1.0 / tl.sqrt(tl.sum(squares, axis=1) / n + epsilon)
        for first in range(0, n, BLOCK):
            inside = (row < rows) & (first + column < n)
            x = tl.load(x_ptr + row * x_stride + first + column, mask=inside, other=0.0).to(tl.float32)
            weight = tl.load(weight_ptr + first + column, mask=first + column < n, other=0.0).to(tl.float32)
            y = x * scale[:, None] * weight
            tl.store(out_ptr + row * out_stride + first + column, y.to(out_ptr.dtype.element_ty), mask=inside)


def rms_norm(out, input, weight, epsilon):
    """out, input: (..., n) with rows of neighbouring words at an even distance; weight: (n,)."""
    n = input.shape[-1]
    if out.numel() == 0:
        return
    x, y = input.view(-1, n), out.view(-1, n)
    block = triton.next_power_of_2(n)
    tile = 2048 if x.is_cuda else 1 << 18
    rows = max(1, min(tile // block, triton.next_power_of_2(x.shape[0])))
    whole = block <= 16384
    _rms_norm[(triton.cdiv(x.shape[0], rows),)](
        y, x, weight, x.shape[0], n, x.stride(0), y.stride(0), float(epsilon),
        ROWS=rows, BLOCK=block if whole else 16384, WHOLE=whole,
        num_warps=max(1, min(16, rows * block // 512)),
    )  # fmt: skip
