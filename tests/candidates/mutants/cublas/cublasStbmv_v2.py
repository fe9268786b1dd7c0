import torch


def places(n, incx, device):
    return torch.arange(n, device=device) * incx + (abs(incx) * (n - 1) if incx < 0 else 0)


def multiply(uplo, trans, diag, n, k, A, lda, x, incx, *, steps=lambda k, n: min(k, n - 1) + 1):
    """The right kernel; what follows the star is what a wrong one does otherwise."""
    if n == 0:
        return
    band = A.as_strided((k + 1, n), (1, lda)).double()
    place = places(n, incx, x.device)
    old = x[place].double()
    new = torch.zeros_like(old)
    for step in range(steps(k, n)):
        diagonal = band[k - step, step:] if uplo == "U" else band[step, : n - step]
        if step == 0 and diag == "U":
            diagonal = torch.ones_like(diagonal)
        if (uplo == "U") == (trans == "N"):
            new[: n - step] += diagonal * old[step:]
        else:
            new[step:] += diagonal * old[: n - step]
    x[place] = new.float()


# breaks: It takes the flag 'C' for 'N'.
def conjugate_as_plain(uplo, trans, *rest):
    multiply(uplo, "N" if trans == "C" else trans, *rest)


# breaks: It writes zeros between the elements of x.
# outcome: input changed
def fills_between(uplo, trans, diag, n, k, A, lda, x, incx):
    multiply(uplo, trans, diag, n, k, A, lda, x, incx)
    if n:
        place = places(n, incx, x.device)
        new = x[place]
        x.zero_()
        x[place] = new


# breaks: It rounds the band to float16.
def float16_band(uplo, trans, diag, n, k, A, *rest):
    multiply(uplo, trans, diag, n, k, A.half(), *rest)


# breaks: It multiplies by A whatever the flag says.
def ignores_transpose(uplo, trans, *rest):
    multiply(uplo, "N", *rest)


# breaks: It leaves out the diagonal farthest from the main one.
def last_diagonal_missing(*given):
    multiply(*given, steps=lambda k, n: max(1, min(k, n - 1)))


# breaks: It walks a negative increment from the begin.
def negative_from_start(uplo, trans, diag, n, k, A, lda, x, incx):
    multiply(uplo, trans, diag, n, k, A, lda, x, abs(incx))


# breaks: It takes every band for a lower one.
def one_triangle(uplo, *rest):
    multiply("L", *rest)


# breaks: It reads the diagonal that the flag says is 1.
def reads_unit_diagonal(uplo, trans, diag, *rest):
    multiply(uplo, trans, "N", *rest)
