"""References of cuBLAS problems, after the Fortran BLAS that cuBLAS documents itself by.

Each function takes its entry's parameters by name. Matrices and vectors arrive as logical views (a column-major matrix
is already indexed [row, column]) in float64 or complex128; sizes, leading dimensions and batch strides are not needed
and go into ``**_``.
"""

from __future__ import annotations

from typing import Any

import torch

from kgbench.baselines.expected import Expected

Expectations = dict[str, Expected]


def gemm(
    transa: str, transb: str, alpha: complex, A: torch.Tensor, B: torch.Tensor, beta: complex, C: torch.Tensor, **_: Any
) -> Expectations:
    """C = alpha op(A) op(B) + beta C; with leading batch dimensions for the batched routines.

    With beta = 0, C is not read; with alpha = 0, A and B are not. The error scale is
    sqrt(|alpha|² |op(A)|² @ |op(B)|² + |beta C|²). For complex128 problems this sum is rounded as an honest kernel's
    is: ``compare`` doubles the limit for that, and the integer cases, where both are exact, are compared bit for bit.
    """
    value = torch.zeros_like(C)
    square = torch.zeros(C.shape, dtype=torch.float64, device=C.device)
    if alpha != 0:
        left, right = operand(A, transa), operand(B, transb)
        value = alpha * (left @ right)
        square = abs(alpha) ** 2 * (left.abs() ** 2 @ right.abs() ** 2)
    if beta != 0:
        value = value + beta * C
        square = square + (abs(beta) * C.abs()) ** 2
    return {"C": Expected(value, square.sqrt())}


def dot(x: torch.Tensor, incx: int, y: torch.Tensor, incy: int, **_: Any) -> Expectations:
    """sum(x * y), a vector with a negative increment read from its end; error scale sqrt(sum((x * y)²))."""
    products = ordered(x, incx) * ordered(y, incy)
    value = products.sum().reshape(1)
    return {"result": Expected(value, (products**2).sum().sqrt().reshape(1))}


def trsm(
    side: str, uplo: str, trans: str, diag: str, alpha: complex, A: torch.Tensor, B: torch.Tensor, **_: Any
) -> Expectations:
    """The X of op(A) X = alpha B (side L) or X op(A) = alpha B (side R), by substitution; X overwrites B.

    Only A's ``uplo`` triangle is read, with a unit diagonal not its diagonal either. With alpha = 0, X is 0 and A is
    not read. The error scale is the largest |x| of the same system of equations: with the well-conditioned A of the
    problem (``dominant``), rounding made in any unknown reaches the later ones at about that size.
    """
    if alpha == 0 or B.numel() == 0:
        return {"B": Expected(torch.zeros_like(B))}
    matrix = operand(triangle(A, uplo, diag), trans)
    lower = (uplo == "L") == (trans == "N")
    if side == "R":
        solution = _substitute(matrix.mT, alpha * B.mT, not lower).mT
        scale = solution.abs().amax(1, keepdim=True)
    else:
        solution = _substitute(matrix, alpha * B, lower)
        scale = solution.abs().amax(0, keepdim=True)
    return {"B": Expected(solution, scale.expand_as(solution))}


def operand(matrix: torch.Tensor, trans: str) -> torch.Tensor:
    """op(matrix): itself, its transpose or its conjugate transpose."""
    if trans == "N":
        return matrix
    return matrix.mT if trans == "T" else matrix.mH


def ordered(vector: torch.Tensor, increment: int) -> torch.Tensor:
    """A vector in the order in which BLAS walks it: with a negative increment from its last element in memory."""
    return vector.flip(0) if increment < 0 else vector


def triangle(matrix: torch.Tensor, uplo: str, diag: str) -> torch.Tensor:
    """The matrix with exact zeros outside its triangle and, for a unit diagonal, ones on it, whatever stood there."""
    keep = torch.tril if uplo == "L" else torch.triu
    if diag == "N":
        return keep(matrix)
    strict = keep(matrix, -1 if uplo == "L" else 1)
    return strict + torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def _substitute(matrix: torch.Tensor, right: torch.Tensor, lower: bool) -> torch.Tensor:
    """X of matrix X = right, one row of X at a time for all right-hand sides; matrix: (k, k) triangular."""
    size = matrix.shape[0]
    solution = torch.zeros_like(right, memory_format=torch.contiguous_format)
    for row in range(size) if lower else reversed(range(size)):
        known = slice(0, row) if lower else slice(row + 1, size)
        solution[row] = (right[row] - matrix[row, known] @ solution[known]) / matrix[row, row]
    return solution
