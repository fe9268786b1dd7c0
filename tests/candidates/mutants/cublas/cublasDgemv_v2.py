import torch


# breaks: It adds the products up in float32.
def float32_sum(trans, m, n, alpha, A, lda, x, incx, beta, y, incy):
    if m == 0 or n == 0:
        return
    a = A.as_strided((m, n), (1, lda))
    a = a if trans == "N" else a.mT
    from_x, to_y = walked(x, a.shape[1], incx), walked(y, a.shape[0], incy)
    result = alpha * (a.float() @ x[from_x].float()).double() if alpha else torch.zeros_like(y[to_y])
    if beta:
        result = result + beta * y[to_y]
    y[to_y] = result


def walked(storage, length, increment):
    """Places of a vector's elements; a negative increment walks from the end."""
    places = torch.arange(length, device=storage.device) * abs(increment)
    return places.flip(0) if increment < 0 else places
