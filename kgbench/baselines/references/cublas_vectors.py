"""References of cuBLAS problems with vectors, scalars or rank updates as results; called as ``cublas.py`` says.

A vector arrives as its elements in memory, without what lies between; ``ordered`` puts it into BLAS's order, which for
a negative increment is the other way round, and back.
"""

from __future__ import annotations

from typing import Any

import torch

from kgbench.baselines.expected import Expected
from kgbench.baselines.references.cublas import (
    Expectations,
    added,
    operand,
    ordered,
    product,
    product_sum,
    substituted,
    symmetric,
    triangle,
)

# --- vectors alone ---


def copy(x: torch.Tensor, incx: int, incy: int, **_: Any) -> Expectations:
    """y = x."""
    return {"y": Expected(ordered(ordered(x, incx), incy))}


def swap(x: torch.Tensor, incx: int, y: torch.Tensor, incy: int, **_: Any) -> Expectations:
    """x and y exchanged."""
    there, back = ordered(ordered(x, incx), incy), ordered(ordered(y, incy), incx)
    return {"x": Expected(back), "y": Expected(there)}


def scal(alpha: complex, x: torch.Tensor, **_: Any) -> Expectations:
    """x = alpha x."""
    return {"x": Expected(alpha * x)}


def axpy(alpha: complex, x: torch.Tensor, incx: int, y: torch.Tensor, incy: int, **_: Any) -> Expectations:
    """y = alpha x + y; with alpha = 0 x is not read."""
    return {"y": added([y] if alpha == 0 else [y, ordered(alpha * ordered(x, incx), incy)], y)}


def dot(x: torch.Tensor, incx: int, y: torch.Tensor, incy: int, **_: Any) -> Expectations:
    """sum(x * y), nothing conjugated; the error scale is that of ``product``."""
    found, square = product(ordered(x, incx)[None], ordered(y, incy)[:, None])
    return {"result": Expected(found.reshape(1), square.sqrt().reshape(1))}


def dotc(x: torch.Tensor, incx: int, y: torch.Tensor, incy: int, **_: Any) -> Expectations:
    """sum(conj(x) * y)."""
    return dot(x.conj(), incx, y, incy)


def asum(x: torch.Tensor, **_: Any) -> Expectations:
    """sum(|x|), for complex numbers sum(|Re x| + |Im x|)."""
    sizes = x.real.abs() + x.imag.abs() if x.is_complex() else x.abs()
    return {"result": Expected(sizes.sum().reshape(1), (sizes**2).sum().sqrt().reshape(1))}


# --- matrix times vector ---


def gemv(
    trans: str,
    alpha: complex,
    A: torch.Tensor,
    x: torch.Tensor,
    incx: int,
    beta: complex,
    y: torch.Tensor,
    incy: int,
    **_: Any,
) -> Expectations:
    """y = alpha op(A) x + beta y; with a batch in front for the batched routines."""
    return {"y": _matrix_vector(alpha, operand(A, trans), x, incx, beta, y, incy)}


def gemv_batched(
    trans: str,
    alpha: complex,
    Aarray: torch.Tensor,
    xarray: torch.Tensor,
    incx: int,
    beta: complex,
    yarray: torch.Tensor,
    incy: int,
    **_: Any,
) -> Expectations:
    """``gemv`` with matrices and vectors behind pointers: the views have the batch in front."""
    return {"yarray": _matrix_vector(alpha, operand(Aarray, trans), xarray, incx, beta, yarray, incy)}


def symv(
    uplo: str,
    alpha: complex,
    A: torch.Tensor,
    x: torch.Tensor,
    incx: int,
    beta: complex,
    y: torch.Tensor,
    incy: int,
    **_: Any,
) -> Expectations:
    """y = alpha A x + beta y, A symmetric (never conjugated) and given by one triangle."""
    return {"y": _matrix_vector(alpha, symmetric(A, uplo), x, incx, beta, y, incy)}


def sbmv(
    uplo: str,
    k: int,
    alpha: complex,
    A: torch.Tensor,
    x: torch.Tensor,
    incx: int,
    beta: complex,
    y: torch.Tensor,
    incy: int,
    **_: Any,
) -> Expectations:
    """y = alpha A x + beta y, A symmetric, given by its diagonal and k diagonals beside it: A is (k + 1, n)."""
    start, vector = ordered(y, incy), ordered(x, incx)
    value, square = torch.zeros_like(start), torch.zeros(start.shape, dtype=torch.float64, device=start.device)
    n = start.shape[-1]
    for step in range(min(k, n - 1) + 1 if alpha != 0 else 0):
        band = alpha * _diagonal(A, uplo, k, step, n)
        early, late = slice(0, n - step), slice(step, n)
        # Every diagonal stands on both sides of the main one, which is there once.
        for rows, columns in ((early, late), (late, early)) if step else ((early, late),):
            value[rows] += band * vector[columns]
            square[rows] += (band * vector[columns]).abs() ** 2
    return {"y": _plus(value, square, beta, start, incy)}


def tbmv(
    uplo: str, trans: str, diag: str, k: int, A: torch.Tensor, x: torch.Tensor, incx: int, **_: Any
) -> Expectations:
    """x = op(A) x, A triangular, given by its diagonal and k diagonals beside it: A is (k + 1, n)."""
    vector = ordered(x, incx)
    value, square = torch.zeros_like(vector), torch.zeros(vector.shape, dtype=torch.float64, device=vector.device)
    n = vector.shape[-1]
    for step in range(min(k, n - 1) + 1):
        band = _diagonal(A, uplo, k, step, n)
        if step == 0 and diag == "U":
            band = torch.ones_like(band)
        band = band.conj() if trans == "C" else band
        early, late = slice(0, n - step), slice(step, n)
        # Above the diagonal, row i needs the later element i + step; a transpose turns that round.
        rows, columns = (early, late) if (uplo == "U") == (trans == "N") else (late, early)
        value[rows] += band * vector[columns]
        square[rows] += (band * vector[columns]).abs() ** 2
    return {"x": Expected(ordered(value, incx), ordered(square.sqrt(), incx))}


def trsv(uplo: str, trans: str, diag: str, A: torch.Tensor, x: torch.Tensor, incx: int, **_: Any) -> Expectations:
    """The x of op(A) x = b, b given in x; by substitution, error scale as in ``trsm``: the largest |x|."""
    if x.numel() == 0:
        return {"x": Expected(x)}
    matrix, lower = operand(triangle(A, uplo, diag), trans), (uplo == "L") == (trans == "N")
    solution = substituted(matrix, ordered(x, incx)[:, None], lower)[:, 0]
    return {"x": Expected(ordered(solution, incx), solution.abs().amax().expand(solution.shape))}


# --- rank updates ---


def ger(
    alpha: complex, x: torch.Tensor, incx: int, y: torch.Tensor, incy: int, A: torch.Tensor, **_: Any
) -> Expectations:
    """A = alpha x yᵀ + A, nothing conjugated; with alpha = 0 x and y are not read."""
    outer = [] if alpha == 0 else [alpha * ordered(x, incx)[:, None] * ordered(y, incy)]
    return {"A": added([A, *outer], A)}


def gerc(
    alpha: complex, x: torch.Tensor, incx: int, y: torch.Tensor, incy: int, A: torch.Tensor, **_: Any
) -> Expectations:
    """A = alpha x yᴴ + A."""
    return ger(alpha, x, incx, y.conj(), incy, A)


def syr2(
    alpha: complex, x: torch.Tensor, incx: int, y: torch.Tensor, incy: int, A: torch.Tensor, **_: Any
) -> Expectations:
    """A = alpha (x yᵀ + y xᵀ) + A; only A's triangle is looked at."""
    if alpha == 0:
        return {"A": Expected(A)}
    outer = alpha * ordered(x, incx)[:, None] * ordered(y, incy)
    return {"A": added([A, outer, outer.mT], A)}


# --- shared ---


def _matrix_vector(
    alpha: complex, matrix: torch.Tensor, x: torch.Tensor, incx: int, beta: complex, y: torch.Tensor, incy: int
) -> Expected:
    start = ordered(y, incy)[..., None]
    return _vector(product_sum(alpha, matrix, ordered(x, incx)[..., None], beta, start), incy)


def _vector(column: Expected, increment: int) -> Expected:
    """A matrix of one column as a vector in memory's order."""
    assert column.magnitude is not None
    value, magnitude = (ordered(each[..., 0], increment) for each in (column.value, column.magnitude))
    return Expected(value, magnitude, None if column.also is None else _vector(column.also, increment))


def _plus(value: torch.Tensor, square: torch.Tensor, beta: complex, start: torch.Tensor, increment: int) -> Expected:
    """value + beta start, in memory's order; with beta = 0 ``start`` is not read."""
    if beta != 0:
        value, square = value + beta * start, square + (abs(beta) * start.abs()) ** 2
    return Expected(ordered(value, increment), ordered(square.sqrt(), increment))


def _diagonal(band: torch.Tensor, uplo: str, k: int, step: int, n: int) -> torch.Tensor:
    """The ``n - step`` elements of the diagonal ``step`` beside the main one, from BLAS's band storage."""
    return band[k - step, step:n] if uplo == "U" else band[step, : n - step]
