import torch
import triton
import triton.language as tl


def _walked(storage, n, increment):
    vector = storage.as_strided((n,), (abs(increment),))
    return vector.flip(0) if increment < 0 else vector


# breaks: alpha and beta are rounded to float32 on their way to the sums.
def scalars_in_single_precision(uplo, n, k, alpha, A, lda, x, incx, beta, y, incy):
    if n == 0:
        return
    alpha, beta = torch.tensor([alpha, beta], dtype=torch.float32).double().tolist()
    values, total = _walked(x, n, incx), torch.zeros(n, dtype=torch.float64, device=x.device)
    for distance in range(min(k, n - 1) + 1):
        # The diagonal at this distance: row k - distance of the band from its column on, or row distance.
        first = k - distance + distance * lda if uplo == "U" else distance
        diagonal = A[first:].as_strided((n - distance,), (lda,))
        total[distance:] += diagonal * values[: n - distance]
        if distance:
            total[: n - distance] += diagonal * values[distance:]
    total *= alpha
    if beta:
        total += beta * _walked(y, n, incy)
    y.as_strided((n,), (abs(incy),)).copy_(total.flip(0) if incy < 0 else total)


@triton.jit
def sbmv(
    a_ptr, x_ptr, y_ptr, scalars_ptr, n, k, lda, incx, incy, LOWER: tl.constexpr, READ: tl.constexpr, B: tl.constexpr
):
    i = tl.program_id(0) * B + tl.arange(0, B)
    acc = tl.zeros((B,), tl.float64)
    for d in range(-k, k + 1):
        j = i + d
        inside = (i < n) & (j >= 0) & (j < n)
        low, high = tl.minimum(i, j), tl.maximum(i, j)
        if LOWER:
            at = high - low + low * lda
        else:
            at = high - low + high * lda
        a = tl.load(a_ptr + at, mask=inside, other=0.0)
        acc += a * tl.load(x_ptr + j * incx, mask=inside, other=0.0)
    acc *= tl.load(scalars_ptr)
    if READ:
        acc += tl.load(scalars_ptr + 1) * tl.load(y_ptr + i * incy, mask=i < n, other=0.0)
    tl.store(y_ptr + i * incy, acc, mask=i < n)


# breaks: The upper band is read like the lower one, with the main diagonal in row 0.
def upper_band_like_lower(uplo, n, k, alpha, A, lda, x, incx, beta, y, incy):
    if n == 0:
        return
    scalars = y.new_tensor([alpha, beta])
    x, y = x[max(0, (1 - n) * incx) :], y[max(0, (1 - n) * incy) :]
    grid = (triton.cdiv(n, 64),)
    sbmv[grid](A, x, y, scalars, n, min(k, n - 1), lda, incx, incy, LOWER=uplo == "L", READ=beta != 0, B=64)
