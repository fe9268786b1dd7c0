"""References of cuBLAS problems with matrices as results, after the Fortran BLAS that cuBLAS documents itself by.

Each function takes its entry's parameters by name. Matrices and vectors arrive as logical views (a column-major matrix
is already indexed [row, column], a batch in front) in float64 or complex128; sizes, leading dimensions, element types
and batch strides are not needed and go into ``**_``. Those with vectors as results are in ``cublas_vectors.py``.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import torch

from kgbench.baselines.expected import Expected

Expectations = dict[str, Expected]
BLOCK: Final = 64
"""Rows of a triangular system that are solved at once; what is known of them comes from one product per block."""
SPLIT_SHARE = 8.0
"""Part of the sizes of the four real sums of a complex product, 1 to so many, that its error scale counts."""


def gemm(
    transa: str, transb: str, alpha: complex, A: torch.Tensor, B: torch.Tensor, beta: complex, C: torch.Tensor, **_: Any
) -> Expectations:
    """C = alpha op(A) op(B) + beta C; with leading batch dimensions for the batched routines.

    With beta = 0, C is not read; with alpha = 0, A and B are not. The error scale is
    sqrt(|alpha|² |op(A)|² @ |op(B)|² + |beta C|²). For complex128 problems this sum is rounded as an honest kernel's
    is: ``compare`` doubles the limit for that, and the integer cases, where both are exact, are compared bit for bit.
    """
    return {"C": product_sum(alpha, operand(A, transa), operand(B, transb), beta, C)}


def gemm_batched(
    transa: str,
    transb: str,
    alpha: complex,
    Aarray: torch.Tensor,
    Barray: torch.Tensor,
    beta: complex,
    Carray: torch.Tensor,
    **_: Any,
) -> Expectations:
    """``gemm`` with matrices behind pointers: the views have the batch in front."""
    return {"Carray": product_sum(alpha, operand(Aarray, transa), operand(Barray, transb), beta, Carray)}


def symm(
    side: str, uplo: str, alpha: complex, A: torch.Tensor, B: torch.Tensor, beta: complex, C: torch.Tensor, **_: Any
) -> Expectations:
    """C = alpha A B + beta C (side L) or alpha B A + beta C (side R), A symmetric and given by one triangle."""
    full = symmetric(A, uplo)
    left, right = (full, B) if side == "L" else (B, full)
    return {"C": product_sum(alpha, left, right, beta, C)}


def syrk(trans: str, alpha: complex, A: torch.Tensor, beta: complex, C: torch.Tensor, **_: Any) -> Expectations:
    """C = alpha op(A) op(A)ᵀ + beta C, symmetric and never conjugated; only C's triangle is looked at."""
    rows = A if trans == "N" else A.mT
    return {"C": product_sum(alpha, rows, rows.mT, beta, C)}


def trsm(
    side: str, uplo: str, trans: str, diag: str, alpha: complex, A: torch.Tensor, B: torch.Tensor, **_: Any
) -> Expectations:
    """The X of op(A) X = alpha B (side L) or X op(A) = alpha B (side R), by substitution; X overwrites B.

    Only A's ``uplo`` triangle is read, with a unit diagonal not its diagonal either. With alpha = 0, X is 0 and A is
    not read. The error scale is the largest |x| of the same system of equations: with the well-conditioned A of the
    problem (``dominant``), rounding made in any unknown reaches the later ones at about that size.
    """
    return {"B": _solved(side, uplo, trans, diag, alpha, A, B)}


def trsm_batched(
    side: str, uplo: str, trans: str, diag: str, alpha: complex, Aarray: torch.Tensor, Barray: torch.Tensor, **_: Any
) -> Expectations:
    """``trsm`` with matrices behind pointers: the views have the batch in front."""
    return {"Barray": _solved(side, uplo, trans, diag, alpha, Aarray, Barray)}


def geam(
    transa: str, transb: str, alpha: complex, A: torch.Tensor, beta: complex, B: torch.Tensor, C: torch.Tensor, **_: Any
) -> Expectations:
    """C = alpha op(A) + beta op(B), elementwise. With alpha = 0, A is not read; with beta = 0, B is not."""
    terms = [
        factor * operand(matrix, trans) for factor, matrix, trans in ((alpha, A, transa), (beta, B, transb)) if factor
    ]
    return {"C": added(terms, C)}


def dgmm(mode: str, A: torch.Tensor, x: torch.Tensor, incx: int, **_: Any) -> Expectations:
    """C = diag(x) A (mode L) or A diag(x) (mode R)."""
    factors = ordered(x, incx)
    return {"C": Expected(factors[:, None] * A if mode == "L" else A * factors)}


# --- shared ---


def product_sum(
    alpha: complex, left: torch.Tensor, right: torch.Tensor, beta: complex, start: torch.Tensor
) -> Expected:
    """alpha left @ right + beta start, and its error scale; nothing is read that a factor of 0 makes needless.

    Of complex numbers an infinite sum is right as it is and as NaN: see ``_scaled``.
    """
    value, other = torch.zeros_like(start), None
    square = torch.zeros(start.shape, dtype=torch.float64, device=start.device)
    if alpha != 0:
        products, scale = product(left.to(value.dtype), right.to(value.dtype))
        (value, other), square = _scaled(alpha, products), abs(alpha) ** 2 * scale
    if beta != 0:
        value, other = value + beta * start, None if other is None else other + beta * start
        square = square + (abs(beta) * start.abs()) ** 2
    return Expected(value, square.sqrt(), None if other is None else Expected(other, square.sqrt()))


def _scaled(alpha: complex, products: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """alpha times complex or real sums; and what else is right where complex ones are infinite, None where none is.

    A factor whose imaginary part is 0 gives NaN in complex arithmetic, since 0 times infinity is none; a kernel that
    leaves out what a real factor makes needless gives infinities.
    """
    value = alpha * products
    if not products.is_complex() or not bool((infinite := torch.isinf(products)).any()):
        return value, None
    value = value.masked_fill(infinite, float("nan"))
    if complex(alpha).imag != 0:
        return value, None
    factor = complex(alpha).real
    return value, torch.where(infinite, torch.complex(products.real * factor, products.imag * factor), value)


def product(left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """left @ right, and the square of its error scale: the sum of squared products, and what split arithmetic adds.

    A complex product is four real ones. Where an operand meets itself, as on the diagonal of A Aᵀ, the squares of the
    real parts and those of the imaginary parts are sums of k / 2 that cancel: their rounding error grows with them, not
    with the root of k. An eighth of the four sums covers it in any order of summation, and is little beside the first
    part where the factors are independent. In other words: sqrt(sum |a|⁴ + (sum |a|² / 8)²) on that diagonal.
    """
    squares = left.abs() ** 2 @ right.abs() ** 2
    if not left.is_complex():
        return left @ right, squares
    (a, b), (c, d) = ((each.real.contiguous(), each.imag.contiguous()) for each in (left, right))
    parts = (a @ c, b @ d, a @ d, b @ c)
    together = parts[0].abs() + parts[1].abs() + parts[2].abs() + parts[3].abs()
    return torch.complex(parts[0] - parts[1], parts[2] + parts[3]), squares + (together / SPLIT_SHARE) ** 2


def added(terms: list[torch.Tensor], like: torch.Tensor) -> Expected:
    """The sum of up to a few terms, zeros of the shape of ``like`` without any; error scale: the root of squares."""
    value = torch.zeros_like(like)
    square = torch.zeros(like.shape, dtype=torch.float64, device=like.device)
    for term in terms:
        value = value + term
        square = square + term.abs() ** 2
    return Expected(value, square.sqrt())


def operand(matrix: torch.Tensor, trans: str) -> torch.Tensor:
    """op(matrix): itself, its transpose or its conjugate transpose."""
    if trans == "N":
        return matrix
    return matrix.mT if trans == "T" else matrix.mH


def ordered(vector: torch.Tensor, increment: int) -> torch.Tensor:
    """A vector in the order in which BLAS walks it: with a negative increment from its last element in memory.

    Its own inverse: a result in BLAS's order becomes one in memory's.
    """
    return vector.flip(-1) if increment < 0 else vector


def triangle(matrix: torch.Tensor, uplo: str, diag: str) -> torch.Tensor:
    """The matrix with exact zeros outside its triangle and, for a unit diagonal, ones on it, whatever stood there."""
    keep = torch.tril if uplo == "L" else torch.triu
    if diag == "N":
        return keep(matrix)
    strict = keep(matrix, -1 if uplo == "L" else 1)
    return strict + torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def symmetric(matrix: torch.Tensor, uplo: str) -> torch.Tensor:
    """The symmetric matrix of which one triangle is given; nothing of the other is read."""
    if uplo == "L":
        return torch.tril(matrix) + torch.tril(matrix, -1).mT
    return torch.triu(matrix) + torch.triu(matrix, 1).mT


def substituted(matrix: torch.Tensor, right: torch.Tensor, lower: bool) -> torch.Tensor:
    """X of matrix X = right, BLOCK rows of X at a time for all right-hand sides; matrix: (…, k, k) triangular."""
    size = matrix.shape[-1]
    solution = torch.zeros_like(right, memory_format=torch.contiguous_format)
    begins = range(0, size, BLOCK)
    for begin in begins if lower else reversed(begins):
        block = slice(begin, min(begin + BLOCK, size))
        known = slice(0, block.start) if lower else slice(block.stop, size)
        rest = right[..., block, :] - matrix[..., block, known] @ solution[..., known, :]
        solution[..., block, :] = _by_rows(matrix[..., block, block], rest, lower)
    return solution


def _by_rows(matrix: torch.Tensor, right: torch.Tensor, lower: bool) -> torch.Tensor:
    """As ``substituted``, one row at a time, so that integers stay exact; on the host, since a row is little work."""
    factors, values = (each.resolve_conj().resolve_neg().cpu().numpy() for each in (matrix, right))
    solution = np.zeros_like(values)
    size = factors.shape[-1]
    with np.errstate(all="ignore"):
        for row in range(size) if lower else reversed(range(size)):
            known = slice(0, row) if lower else slice(row + 1, size)
            taken = (factors[..., row, None, known] @ solution[..., known, :])[..., 0, :]
            solution[..., row, :] = (values[..., row, :] - taken) / factors[..., row, row, None]
    return torch.from_numpy(solution).to(right.device)


def _solved(
    side: str, uplo: str, trans: str, diag: str, alpha: complex, matrix: torch.Tensor, right: torch.Tensor
) -> Expected:
    if alpha == 0 or right.numel() == 0:
        return Expected(torch.zeros_like(right))
    matrix = operand(triangle(matrix, uplo, diag), trans)
    lower = (uplo == "L") == (trans == "N")
    if side == "R":
        solution = substituted(matrix.mT, alpha * right.mT, not lower).mT
        scale = solution.abs().amax(-1, keepdim=True)
    else:
        solution = substituted(matrix, alpha * right, lower)
        scale = solution.abs().amax(-2, keepdim=True)
    return Expected(solution, scale.expand_as(solution))
