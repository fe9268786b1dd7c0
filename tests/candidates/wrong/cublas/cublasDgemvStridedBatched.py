def _walked(storage, batch, stride, length, increment):
    vectors = storage.as_strided((batch, length), (stride, abs(increment)))
    return vectors.flip(1) if increment < 0 else vectors


# breaks: An element is one dot product of 1024 lanes, and terms from 1024 on are left out.
def rows_of_1024(trans, m, n, alpha, A, lda, strideA, x, incx, stridex, beta, y, incy, stridey, batchCount):
    if not (m and n and batchCount):
        return
    rows, terms, steps = (m, n, (1, lda)) if trans == "N" else (n, m, (lda, 1))
    total = 0.0
    if alpha:
        a = A.as_strided((batchCount, rows, terms), (strideA, *steps))[:, :, :1024]
        total = alpha * (a @ _walked(x, batchCount, stridex, terms, incx)[:, :1024, None]).squeeze(-1)
    out = y.as_strided((batchCount, rows), (stridey, abs(incy)))
    if incy < 0 and alpha:
        total = total.flip(1)
    out.copy_(total + beta * out if beta else total + out.new_zeros(out.shape))
