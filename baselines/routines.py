"""The BLAS routines as data that both callers read: one signature row each, and the status codes.

``cublas.py`` turns a row into a ctypes call of libcublas, ``openblas.py`` into one of OpenBLAS. A routine that takes
the usual kinds of argument is added by adding its row here; nothing else changes.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

KINDS: Final = {
    "T": "transpose flag: 'N', 'T' or 'C'",
    "U": "triangle flag: 'U' or 'L'",
    "L": "side flag: 'L' or 'R'",
    "D": "diagonal flag: 'U' (unit) or 'N'",
    "i": "32-bit integer: a size, a leading dimension, an increment",
    "l": "64-bit integer: a stride between matrices of a batch",
    "s": "float32 scalar in host memory (a Python number)",
    "d": "float64 scalar in host memory",
    "c": "complex64 scalar in host memory",
    "z": "complex128 scalar in host memory",
    "p": "tensor: storage, or an int64 tensor of addresses",
    "r": "tensor of one element that receives a scalar result",
}

ROUTINES: Final = {
    # transa transb | m n k | alpha A lda B ldb beta C ldc
    "cublasSgemm_v2": "TT iii s pi pi s pi",
    # n | x incx | y incy | result
    "cublasSdot_v2": "i pi pi r",
    # side uplo trans diag | m n | alpha A lda B ldb
    "cublasStrsm_v2": "LUTD ii s pi pi",
    # transa transb | m n k | alpha A lda strideA B ldb strideB beta C ldc strideC | batchCount
    "cublasZgemmStridedBatched": "TT iii z pil pil z pil i",
}

STATUS: Final = {
    0: "CUBLAS_STATUS_SUCCESS",
    1: "CUBLAS_STATUS_NOT_INITIALIZED",
    3: "CUBLAS_STATUS_ALLOC_FAILED",
    7: "CUBLAS_STATUS_INVALID_VALUE",
    8: "CUBLAS_STATUS_ARCH_MISMATCH",
    11: "CUBLAS_STATUS_MAPPING_ERROR",
    13: "CUBLAS_STATUS_EXECUTION_FAILED",
    14: "CUBLAS_STATUS_INTERNAL_ERROR",
    15: "CUBLAS_STATUS_NOT_SUPPORTED",
    16: "CUBLAS_STATUS_LICENSE_ERROR",
}


def letters(name: str) -> str:
    """One letter of KINDS per argument, in the entry's order; raises ``ValueError`` for a routine without a row."""
    try:
        return ROUTINES[name].replace(" ", "")
    except KeyError:
        raise ValueError(f"{name}: no signature is known; add its row to ROUTINES in baselines/routines.py") from None


def status_name(status: int) -> str:
    """The constant's name for a status code, ``unknown status 99`` for one that the table lacks."""
    return STATUS.get(status, f"unknown status {status}")


def version_text(version: int) -> str:
    """``130100`` as ``13.1.0``: major * 10000 + minor * 100 + patch, as cublasGetVersion_v2 counts since 12."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def real_scalar(ctype: Any) -> Callable[[float], int]:
    """A function that puts a number into a buffer of its own and returns the buffer's address.

    A routine has read its host scalars when it returns, so one buffer per argument is enough.
    """
    buffer = ctype()
    address = ctypes.addressof(buffer)

    def convert(value: float) -> int:
        buffer.value = value
        return address

    return convert


def complex_scalar(ctype: Any) -> Callable[[complex], int]:
    """As ``real_scalar``, for a pair of ``ctype``: real part, imaginary part."""
    buffer = (ctype * 2)()
    address = ctypes.addressof(buffer)

    def convert(value: complex) -> int:
        buffer[0], buffer[1] = value.real, value.imag
        return address

    return convert
