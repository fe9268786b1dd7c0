"""OpenBLAS through ctypes, with the entries of cuBLAS: what a machine without a GPU is compared with.

The library comes from the wheel ``scipy-openblas32``, whose symbols carry the prefix ``scipy_``. The signatures come
from ``routines.py``, the mirror image of ``cublas.py``. One thread, as for the candidate.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import torch

from kgbench.baselines.registry import Baseline, Unavailable
from kgbench.baselines.routines import complex_scalar, letters

SYMBOLS: Final = {
    "cublasSgemm_v2": "cblas_sgemm",
    "cublasSdot_v2": "cblas_sdot",
    "cublasStrsm_v2": "cblas_strsm",
    "cublasZgemmStridedBatched": "cblas_zgemm_batch_strided",
}
COLUMN_MAJOR: Final = 102
_LARGEST_INT: Final = 2**31 - 1

_FLAGS: Final[dict[str, dict[str, int]]] = {
    "T": {"N": 111, "T": 112, "C": 113},
    "U": {"U": 121, "L": 122},
    "D": {"N": 131, "U": 132},
    "L": {"L": 141, "R": 142},
}
_BY_VALUE: Final[dict[str, Any]] = {"s": ctypes.c_float, "d": ctypes.c_double}
_BY_POINTER: Final[dict[str, Any]] = {"c": ctypes.c_float, "z": ctypes.c_double}
_RESULTS: Final[dict[str, Any]] = {"s": ctypes.c_float, "d": ctypes.c_double}


def load(name: str, device_kind: str) -> Baseline:
    """The CBLAS function behind the cuBLAS routine ``name``, on CPU tensors.

    Raises ``Unavailable`` without the wheel or on a GPU, ``ValueError`` for a routine without a row.
    """
    signature = letters(name)
    if name not in SYMBOLS:
        raise ValueError(f"openblas:{name}: no symbol is known; add its row to SYMBOLS in baselines/openblas.py")
    if device_kind != "cpu":
        raise Unavailable("OpenBLAS works on host memory; on a GPU the baseline is cublas:")
    library = _library()
    symbol = f"scipy_{SYMBOLS[name]}"
    if not hasattr(library, symbol):
        raise Unavailable(f"{_version(library)} has no {symbol}; pip install -U scipy-openblas32")
    notes = {"symbol": symbol, "threads": "1"}
    return Baseline(call=_caller(library, symbol, signature), library=_version(library), notes=notes)


@functools.cache
def _library() -> ctypes.CDLL:
    if importlib.util.find_spec("scipy_openblas32") is None:
        raise Unavailable("OpenBLAS is not installed; pip install scipy-openblas32")
    wheel = importlib.import_module("scipy_openblas32")
    library = ctypes.CDLL(str(Path(wheel.get_lib_dir()) / wheel.get_library(fullname=True)))
    library.scipy_openblas_set_num_threads(ctypes.c_int(1))
    return library


def _version(library: ctypes.CDLL) -> str:
    """``OpenBLAS 0.3.34`` from the library's own configuration text."""
    library.scipy_openblas_get_config.restype = ctypes.c_char_p
    return " ".join(library.scipy_openblas_get_config().decode().split()[:2])


def _caller(library: ctypes.CDLL, symbol: str, signature: str) -> Callable[..., None]:
    """The function as one of the cuBLAS entry's arguments; a scalar result goes to the entry's last argument."""
    gives_result = signature.endswith("r")
    slots = [_slot(letter) for letter in signature.removesuffix("r")]
    order = [] if gives_result else [COLUMN_MAJOR]
    function = getattr(library, symbol)
    function.argtypes = [ctypes.c_int] * len(order) + [argtype for argtype, _ in slots]
    function.restype = _RESULTS[symbol.removeprefix("scipy_cblas_")[0]] if gives_result else None
    converters = tuple(convert for _, convert in slots)

    def call(*arguments: Any) -> None:
        converted = [convert(value) for convert, value in zip(converters, arguments, strict=True)]
        function(*order, *converted)

    def call_with_result(*arguments: Any) -> None:
        *inputs, result = arguments
        converted = [convert(value) for convert, value in zip(converters, inputs, strict=True)]
        result.fill_(function(*converted))

    return call_with_result if gives_result else call


def _slot(letter: str) -> tuple[Any, Callable[[Any], Any]]:
    """The ctypes type of one argument and the function that converts the entry's value to it."""
    if letter in _FLAGS:
        return ctypes.c_int, _FLAGS[letter].__getitem__
    if letter in "il":
        return ctypes.c_int, _checked_int
    if letter in _BY_VALUE:
        return _BY_VALUE[letter], float
    if letter in _BY_POINTER:
        return ctypes.c_void_p, complex_scalar(_BY_POINTER[letter])
    return ctypes.c_void_p, torch.Tensor.data_ptr


def _checked_int(value: int) -> int:
    """The value, or ``OverflowError``: this OpenBLAS counts in 32 bits, and ctypes would cut the rest off."""
    if abs(value) > _LARGEST_INT:
        raise OverflowError(f"{value} does not fit the 32-bit integers of scipy-openblas32")
    return value
