"""The BLAS routines as data that both callers read: one signature row per family, and the status codes.

``cublas.py`` turns a row into a ctypes call of libcublas, ``openblas.py`` into one of OpenBLAS. A routine that takes
the usual kinds of argument is added by adding its row here; nothing else changes. A test compares every row with
what NVIDIA's header declares.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, Final

KINDS: Final = {
    "T": "transpose flag: 'N', 'T' or 'C'",
    "U": "triangle flag: 'U' or 'L'",
    "L": "side flag: 'L' or 'R'",
    "D": "diagonal flag: 'U' (unit) or 'N'",
    "i": "32-bit integer: a size, a leading dimension, an increment",
    "I": "the same as a 64-bit integer, in the routines that end in _64",
    "l": "64-bit integer: a stride between matrices of a batch",
    "h": "float16 scalar in host memory (a Python number)",
    "s": "float32 scalar in host memory",
    "d": "float64 scalar in host memory",
    "c": "complex64 scalar in host memory",
    "z": "complex128 scalar in host memory",
    "p": "tensor: storage",
    "a": "array of pointers: an int64 tensor of addresses",
    "e": "type of a matrix's elements: a torch.dtype",
    "r": "tensor of one element that receives a scalar result",
}

FAMILIES: Final = (
    # Name with {} for the precision, precisions, and a letter of KINDS per argument; x is the precision's scalar.
    ("cublas{}copy_v2", "SDCZ", "i pi pi"),
    ("cublas{}swap_v2", "SDCZ", "i pi pi"),
    ("cublas{}scal_v2", "SDCZ", "i x pi"),
    ("cublas{}axpy_v2", "SDCZ", "i x pi pi"),
    ("cublas{}asum_v2", "SD", "i pi r"),
    ("cublas{}dot_v2", "SD", "i pi pi r"),
    ("cublas{}dotu_v2", "CZ", "i pi pi r"),
    ("cublas{}dotc_v2", "CZ", "i pi pi r"),
    # trans | m n | alpha A lda x incx beta y incy
    ("cublas{}gemv_v2", "SDCZ", "T ii x pi pi x pi"),
    ("cublas{}gemvBatched", "SDCZ", "T ii x ai ai x ai i"),
    ("cublas{}gemvStridedBatched", "SDCZ", "T ii x pil pil x pil i"),
    # m n | alpha x incx y incy A lda
    ("cublas{}ger_v2", "SD", "ii x pi pi pi"),
    ("cublas{}geru_v2", "CZ", "ii x pi pi pi"),
    ("cublas{}gerc_v2", "CZ", "ii x pi pi pi"),
    ("cublas{}symv_v2", "SDCZ", "U i x pi pi x pi"),
    ("cublas{}sbmv_v2", "SD", "U ii x pi pi x pi"),
    ("cublas{}syr2_v2", "SDCZ", "U i x pi pi pi"),
    # uplo trans diag | n k | A lda x incx
    ("cublas{}tbmv_v2", "SDCZ", "UTD ii pi pi"),
    ("cublas{}trsv_v2", "SDCZ", "UTD i pi pi"),
    # transa transb | m n k | alpha A lda B ldb beta C ldc
    ("cublas{}gemm_v2", "SDCZ", "TT iii x pi pi x pi"),
    ("cublas{}gemm", "H", "TT iii x pi pi x pi"),
    ("cublas{}gemmBatched", "HSDCZ", "TT iii x ai ai x ai i"),
    ("cublas{}gemmStridedBatched", "HSDCZ", "TT iii x pil pil x pil i"),
    ("cublas{}gemmEx", "SC", "TT iii x pei pei x pei"),
    # side uplo | m n | alpha A lda B ldb beta C ldc
    ("cublas{}symm_v2", "SDCZ", "LU ii x pi pi x pi"),
    ("cublas{}syrk_v2", "SDCZ", "UT ii x pi x pi"),
    ("cublas{}syrkEx", "C", "UT ii x pei x pei"),
    # side uplo trans diag | m n | alpha A lda B ldb
    ("cublas{}trsm_v2", "SDCZ", "LUTD ii x pi pi"),
    ("cublas{}trsmBatched", "SDCZ", "LUTD ii x ai ai i"),
    # transa transb | m n | alpha A lda beta B ldb C ldc
    ("cublas{}geam", "SDCZ", "TT ii x pi x pi pi"),
    # mode | m n | A lda x incx C ldc
    ("cublas{}dgmm", "SDCZ", "L ii pi pi pi"),
)


def _expanded() -> dict[str, str]:
    """Every routine by name: each family in each of its precisions, and again with 64-bit integers."""
    found = {}
    for pattern, precisions, row in FAMILIES:
        for precision in precisions:
            signature = row.replace("x", precision.lower()).replace(" ", "")
            found[pattern.format(precision)] = signature
            found[pattern.format(precision) + "_64"] = signature.replace("i", "I")
    return found


ROUTINES: Final = _expanded()

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
        return ROUTINES[name]
    except KeyError:
        raise ValueError(f"{name}: no signature is known; add its row to FAMILIES in baselines/routines.py") from None


def misfit(name: str, error: Exception) -> ValueError:
    """What is raised where the arguments of a call cannot be converted as the routine's row says."""
    row = ROUTINES.get(name, "")
    words = f"{name}: the entry's arguments do not fit '{row}', its row in baselines/routines.py"
    return ValueError(f"{words}: {error}; correct the row, or name another routine as the problem's baseline")


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


def half_scalar() -> Callable[[float], int]:
    """As ``real_scalar``, for float16, which ctypes has no type for."""
    buffer = ctypes.create_string_buffer(2)
    address = ctypes.addressof(buffer)

    def convert(value: float) -> int:
        struct.pack_into("<e", buffer, 0, value)
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
