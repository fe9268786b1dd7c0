import torch


# breaks: It conjugates x in place of y.
def conjugates_x(m, n, alpha, x, incx, y, incy, A, lda):
    if m == 0 or n == 0 or alpha == 0:
        return
    a = A.as_strided((m, n), (1, lda))
    a += alpha * torch.outer(x[walked(x, m, incx)].conj(), y[walked(y, n, incy)])


def walked(storage, length, increment):
    """Places of a vector's elements; a negative increment walks from the end."""
    places = torch.arange(length, device=storage.device) * abs(increment)
    return places.flip(0) if increment < 0 else places
