import torch


# breaks: The elements of a row are read by 64 lanes, and diagonals from 64 on are left out.
def bands_of_64(uplo, trans, diag, n, k, A, lda, x, incx):
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


# breaks: x is updated from the first element on, and later sums read updated elements.
def overwrites_what_is_still_needed(uplo, trans, diag, n, k, A, lda, x, incx):
    if n == 0:
        return
    start = max(0, (1 - n) * incx)
    lower = uplo == "L"
    for i in range(n):
        low, high = max(0, i - k), min(n - 1, i + k)
        below = lower == (trans == "N")
        columns = range(low, i + 1) if below else range(i, high + 1)
        total = torch.zeros((), dtype=torch.float32, device=x.device)
        for j in columns:
            row, column = (i, j) if trans == "N" else (j, i)
            if i == j and diag == "U":
                value = 1.0
            else:
                value = A[(row - column if lower else k + row - column) + column * lda]
            total = total + value * x[start + j * incx]
        x[start + i * incx] = total
