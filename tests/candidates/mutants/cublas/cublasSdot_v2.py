import torch


def vector(storage, n, inc):
    first = (1 - n) * inc if inc < 0 else 0
    return storage[first + inc * torch.arange(n, device=storage.device)].double()


# breaks: It adds to what result holds.
def adds_to_result(n, x, incx, y, incy, result):
    result.add_((vector(x, n, incx) * vector(y, n, incy)).sum())


# breaks: It keeps the sum in bfloat16.
def bfloat16_sum(n, x, incx, y, incy, result):
    result.fill_((vector(x, n, incx) * vector(y, n, incy)).sum().bfloat16().float())


# breaks: It leaves result as it was when n is 0.
def empty_unwritten(n, x, incx, y, incy, result):
    if n == 0:
        return
    result.fill_((vector(x, n, incx) * vector(y, n, incy)).sum())


# breaks: It rounds every product to float16.
def float16_products(n, x, incx, y, incy, result):
    result.fill_((vector(x, n, incx) * vector(y, n, incy)).half().double().sum())


# breaks: It takes incy for 1.
def ignores_incy(n, x, incx, y, incy, result):
    result.fill_((vector(x, n, incx) * vector(y, n, 1)).sum())


# breaks: It forgets what is left of n after tiles of 32.
def last_tile(n, x, incx, y, incy, result):
    products = vector(x, n, incx) * vector(y, n, incy)
    result.fill_(products[: n // 32 * 32].sum())


def vector_negative_from_start(storage, n, inc):
    inc, first = abs(inc), 0
    return storage[first + inc * torch.arange(n, device=storage.device)].double()


# breaks: It takes a negative increment for its size, so that the vector is walked from its start.
def negative_from_start(n, x, incx, y, incy, result):
    result.fill_((vector_negative_from_start(x, n, incx) * vector_negative_from_start(y, n, incy)).sum())


# breaks: It forms the products in y.
# outcome: input changed
def scratch_in_y(n, x, incx, y, incy, result):
    if incx == incy == 1:
        y[:n].mul_(x[:n])
        result.fill_(y[:n].double().sum())
        return
    result.fill_((vector(x, n, incx) * vector(y, n, incy)).sum())
