import triton
import triton.language as tl


@triton.jit
def gemv_batch(
    a_ptr, x_ptr, y_ptr, rows, columns, alpha, beta, sa, sb, za, incx, zx, incy, zy, READ: tl.constexpr, B: tl.constexpr
):
    z = tl.program_id(1)
    i = tl.program_id(0) * B + tl.arange(0, B)
    acc = tl.zeros((B,), tl.float32)
    for j in range(0, columns):
        acc += tl.load(a_ptr + z * za + i * sa + j * sb, mask=i < rows, other=0.0) * tl.load(x_ptr + z * zx + j * incx)
    acc *= alpha
    at = y_ptr + z * zy + i * incy
    if READ:
        acc += beta * tl.load(at, mask=i < rows, other=0.0)
    tl.store(at, acc, mask=i < rows)


# breaks: The matrices are taken for row-major, so that 'N' and 'T' are exchanged; right for one column.
# outcome: wrong value | crashed
def row_major_matrices(trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount):
    if not (m and n and batchCount):
        return
    rows, columns = (m, n) if trans == "N" else (n, m)
    x = x[max(0, (1 - columns) * incx) :]
    y = y[max(0, (1 - rows) * incy) :]
    strides = (lda, 1) if trans == "N" else (1, lda)
    grid = (triton.cdiv(rows, 128), batchCount)
    sizes = (rows, columns if alpha else 0, float(alpha), float(beta))
    gemv_batch[grid](A, x, y, *sizes, *strides, strideA, incx, stridex, incy, stridey, READ=beta != 0, B=128)
