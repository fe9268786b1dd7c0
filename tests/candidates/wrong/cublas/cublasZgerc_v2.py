import torch


# breaks: alpha is conjugated together with y.
def alpha_conjugated_too(m, n, alpha, x, incx, y, incy, A, lda):
    if m == 0 or n == 0 or alpha == 0:
        return

    def elements(vector, length, increment):
        view = vector.as_strided((length,), (abs(increment),))
        return view.flip(0) if increment < 0 else view

    left = elements(x, m, incx)
    right = elements(y, n, incy)
    a = A.as_strided((m, n), (1, lda))
    for j in range(n):
        factor = (alpha * right[j]).conj()
        a[:, j] += torch.mul(left, factor)
