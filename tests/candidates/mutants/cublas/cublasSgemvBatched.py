import ctypes

import torch


# breaks: It takes the step between the first two addresses for that between all.
# outcome: wrong value | input changed | crashed
def constant_step(trans, m, n, alpha, Aarray, lda, xarray, incx, beta, yarray, incy, batchCount):
    if m == 0 or n == 0:
        return
    Aarray, xarray, yarray = (steady(array) for array in (Aarray, xarray, yarray))
    columns, rows = (n, m) if trans == "N" else (m, n)
    for to_a, to_x, to_y in zip(Aarray.tolist(), xarray.tolist(), yarray.tolist(), strict=True):
        a = memory(to_a, m + (n - 1) * lda).as_strided((m, n), (1, lda))
        x, y = memory(to_x, 1 + (columns - 1) * abs(incx)), memory(to_y, 1 + (rows - 1) * abs(incy))
        from_x, at_y = walked(x, columns, incx), walked(y, rows, incy)
        result = alpha * ((a if trans == "N" else a.mT) @ x[from_x]) if alpha else torch.zeros(rows)
        if beta:
            result = result + beta * y[at_y]
        y[at_y] = result


def memory(address, count):
    """``count`` float32 at an address of this process."""
    return torch.frombuffer((ctypes.c_float * count).from_address(address), dtype=torch.float32)


def walked(storage, length, increment):
    """Places of a vector's elements; a negative increment walks from the end."""
    places = torch.arange(length, device=storage.device) * abs(increment)
    return places.flip(0) if increment < 0 else places


def steady(addresses):
    if len(addresses) < 2 or addresses[1] <= addresses[0]:
        return addresses
    return addresses[0] + torch.arange(len(addresses)) * (addresses[1] - addresses[0])
