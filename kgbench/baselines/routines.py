"""The BLAS routines as data for both callers: one signature row per family, and the status codes.

``cublas.py`` turns a signature into a ctypes call of libcublas, ``openblas.py`` into one of OpenBLAS. A routine without
a row has its signature in its problem's file, under the key ``signature``. Either is compared with NVIDIA's header
before anything is called.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import Any, Final

from kgbench.baselines import cublas_api
from kgbench.problem import blas

FAMILIES: Final = (
    # Name with {} for the precision, precisions, and a letter of kgbench/problem/blas.py per argument.
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
            routine = pattern.format(precision)
            found[routine] = blas.resolved(row, routine)
            found[f"{routine}_64"] = found[routine].replace("i", "I")
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
    """One letter of ``problem.blas.LETTERS`` per argument, in the entry's order.

    ``name`` is the text after the colon in a target: ``cublasSgemm_v2``, or ``cublasSrot_v2(i pi pi x x)`` for a
    routine with its own signature. Raises ``ValueError`` without a signature, for two that differ, and for one that
    contradicts cuBLAS's header.
    """
    routine, own = blas.split(name)
    row = ROUTINES.get(routine, "")
    if not own and not row:
        raise ValueError(
            f"{routine}: no signature is known; add its row to FAMILIES in baselines/routines.py, or the key signature "
            "to the problem's file"
        )
    found = blas.resolved(own, routine) if own else row
    if own and row and found != row:
        raise ValueError(f"{routine}: the key signature says '{found}', and its row in baselines/routines.py '{row}'")
    if why := cublas_api.difference(routine, found):
        raise ValueError(f"{routine}: {_source(name)} cannot be right: {why}")
    return found


def misfit(name: str, error: Exception) -> ValueError:
    """The error for a call whose arguments cannot be converted by the routine's signature."""
    routine, own = blas.split(name)
    words = f"{routine}: the entry's arguments do not fit {_source(name)}"
    step = "correct the signature" if own else "correct the row"
    return ValueError(f"{words}: {error}; {step}, or name another routine as the problem's baseline")


def _source(name: str) -> str:
    """``'ipipiss', the key signature of the problem's file``."""
    routine, own = blas.split(name)
    if own:
        return f"'{blas.resolved(own, routine)}', the key signature of the problem's file"
    return f"'{ROUTINES.get(routine, '')}', its row in baselines/routines.py"


def status_name(status: int) -> str:
    """The constant's name for a status code; ``unknown status 99`` for one that the table lacks."""
    return STATUS.get(status, f"unknown status {status}")


def version_text(version: int) -> str:
    """``130100`` as ``13.1.0``: major * 10000 + minor * 100 + patch, as cublasGetVersion_v2 counts since 12."""
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def real_scalar(ctype: Any) -> Callable[[float], int]:
    """A function that writes a number to its own buffer and returns the buffer's address.

    A routine has read its host scalars before it returns, so one buffer per argument is enough.
    """
    buffer = ctype()
    address = ctypes.addressof(buffer)

    def convert(value: float) -> int:
        buffer.value = value
        return address

    return convert


def half_scalar() -> Callable[[float], int]:
    """As ``real_scalar``, for float16, for which ctypes has no type."""
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
