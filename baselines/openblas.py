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
    # Once per matrix: cblas_zgemm_batch_strided of OpenBLAS 0.3.34 counts its strides in real numbers, half of what
    # it is given, and other versions refuse column-major batches (OpenMathLib/OpenBLAS#5979).
    "cublasZgemmStridedBatched": "cblas_zgemm",
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
    batched = "l" in signature
    caller = _batch_caller if batched else _caller
    notes = {"symbol": f"{symbol}, once per matrix" if batched else symbol, "threads": "1"}
    return Baseline(call=caller(library, symbol, signature), library=_version(library), notes=notes)


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
    function, converters = _bound(library, symbol, signature.removesuffix("r"), not gives_result)
    if gives_result:
        function.restype = _RESULTS[symbol.removeprefix("scipy_cblas_")[0]]

    def call(*arguments: Any) -> None:
        function(*(convert(value) for convert, value in zip(converters, arguments, strict=True)))

    def call_with_result(*arguments: Any) -> None:
        *inputs, result = arguments
        result.fill_(function(*(convert(value) for convert, value in zip(converters, inputs, strict=True))))

    return call_with_result if gives_result else call


def _batch_caller(library: ctypes.CDLL, symbol: str, signature: str) -> Callable[..., None]:
    """A strided-batched entry as a loop over its plain routine: a stride ``l`` belongs to the last ``p`` before it."""
    kept = [position for position, letter in enumerate(signature[:-1]) if letter != "l"]
    function, converters = _bound(library, symbol, "".join(signature[position] for position in kept), True)
    pointers = [position for position in kept if signature[position] == "p"]
    strides = [signature.index("l", position) for position in pointers]
    places = [kept.index(position) for position in pointers]

    def call(*arguments: Any) -> None:
        values = [convert(arguments[position]) for convert, position in zip(converters, kept, strict=True)]
        steps = [
            arguments[stride] * arguments[pointer].element_size()
            for pointer, stride in zip(pointers, strides, strict=True)
        ]
        for _ in range(arguments[-1]):
            function(*values)
            for place, step in zip(places, steps, strict=True):
                values[place] += step

    return call


def _bound(
    library: ctypes.CDLL, symbol: str, signature: str, is_ordered: bool
) -> tuple[Any, tuple[Callable[[Any], Any], ...]]:
    """The function, column-major where it takes an order, and the converters of its other arguments."""
    slots = [_slot(letter) for letter in signature]
    # A function object of its own: two routines may share a symbol and must not share argtypes.
    function = library[symbol]
    function.argtypes = [ctypes.c_int] * is_ordered + [argtype for argtype, _ in slots]
    function.restype = None
    converters = tuple(convert for _, convert in slots)
    return (functools.partial(function, COLUMN_MAJOR) if is_ordered else function), converters


def _slot(letter: str) -> tuple[Any, Callable[[Any], Any]]:
    """The ctypes type of one argument and the function that converts the entry's value to it."""
    if letter in _FLAGS:
        return ctypes.c_int, _FLAGS[letter].__getitem__
    if letter == "i":
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
