import torch
import triton
import triton.language as tl


@triton.jit
def gemv_pointers(
    a_ptrs, x_ptrs, y_ptrs, scalars_ptr, rows, columns, sa, sb, incx, firstx, incy, firsty,
    READ: tl.constexpr, B: tl.constexpr,
):  # fmt: skip
    z = tl.program_id(1)
    a = tl.load(a_ptrs + z).to(tl.pointer_type(tl.float64))
    x = tl.load(x_ptrs + z).to(tl.pointer_type(tl.float64))
    y = tl.load(y_ptrs + z).to(tl.pointer_type(tl.float64))
    i = tl.program_id(0) * B + tl.arange(0, B)
    acc = tl.zeros((B,), tl.float64)
    for j in range(0, columns):
        acc += tl.load(a + i * sa + j * sb, mask=i < rows, other=0.0) * tl.load(x + firstx + j * incx)
    acc *= tl.load(scalars_ptr)
    if READ:
        acc += tl.load(scalars_ptr + 1) * tl.load(y + firsty + i * incy, mask=i < rows, other=0.0)
    tl.store(y + firsty + i * incy, acc, mask=i < rows)


# breaks: y is written at x's increment.
# outcome: input changed
def increments_of_x_for_y(trans, m, n, alpha, Aarray, lda, xarray, incx, beta, yarray, incy, batchCount):
    if not (m and n and batchCount):
        return
    scalars = Aarray.new_tensor([alpha, beta], dtype=torch.float64)
    rows, columns = (m, n) if trans == "N" else (n, m)
    strides = (1, lda) if trans == "N" else (lda, 1)
    firstx, firsty = max(0, (1 - columns) * incx), max(0, (1 - rows) * incx)
    grid = (triton.cdiv(rows, 64), batchCount)
    sizes = (rows, columns if alpha else 0, *strides, incx, firstx, incx, firsty)
    gemv_pointers[grid](Aarray, xarray, yarray, scalars, *sizes, READ=beta != 0, B=64)
