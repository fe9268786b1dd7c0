# outcome: wrong value
# breaks: The elements of a row are read by 64 lanes, and diagonals from 64 on are left out.


def cublasStbmv_v2(uplo, trans, diag, n, k, A, lda, x, incx):
    if n == 0:
        return
    vector = x.as_strided((n,), (abs(incx),))
    values = vector.flip(0) if incx < 0 else vector.clone()
    total = values.new_zeros(n)
    lower = (uplo == "L") == (trans == "N")
    for distance in range(min(k, n - 1, 63) + 1):
        if distance == 0 and diag == "U":
            total += values
            continue
        first = k - distance + distance * lda if uplo == "U" else distance
        diagonal = A[first:].as_strided((n - distance,), (lda,))
        if lower:
            total[distance:] += diagonal * values[: n - distance]
        else:
            total[: n - distance] += diagonal * values[distance:]
    vector.copy_(total.flip(0) if incx < 0 else total)
