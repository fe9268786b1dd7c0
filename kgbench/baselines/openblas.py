"""OpenBLAS through ctypes, with the entries of cuBLAS: the baseline on a machine without a GPU.

The library comes from the wheel ``scipy-openblas32``, whose symbols carry the prefix ``scipy_``. The signatures come
from ``routines.py``, as in ``cublas.py``. One thread, as for the candidate. Each routine is a *kernel* for one matrix,
on addresses; a batch is a loop over its matrices. A routine that CBLAS lacks is composed of its calls; the baseline's
notes name them.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch

from kgbench.baselines import cblas_api
from kgbench.baselines.cblas_api import NAME, why_not
from kgbench.baselines.registry import Baseline, Unavailable
from kgbench.baselines.routines import complex_scalar, letters, misfit
from kgbench.core.kinds import DeviceKind
from kgbench.problem.blas import split

COLUMN_MAJOR: Final = 102
"""CblasColMajor, the first argument of CBLAS functions that take a matrix."""
_LARGEST_INT: Final = 2**31 - 1
"""Largest value of a 32-bit integer argument of OpenBLAS."""

_FLAGS: Final[dict[str, dict[str, int]]] = {
    "T": {"N": 111, "T": 112, "C": 113},
    "U": {"U": 121, "L": 122},
    "D": {"N": 131, "U": 132},
    "L": {"L": 141, "R": 142},
}
_REAL: Final[dict[str, Any]] = {"s": ctypes.c_float, "d": ctypes.c_double}
_COMPLEX: Final[dict[str, Any]] = {"c": ctypes.c_float, "z": ctypes.c_double}
_DTYPES: Final = {
    "h": torch.float16,
    "s": torch.float32,
    "d": torch.float64,
    "c": torch.complex64,
    "z": torch.complex128,
}
_ONE_MATRIX: Final = str.maketrans({"a": "p", "I": "i", "h": "s", "l": None})
"""Translates a signature's letters to those of the routine for one matrix."""


@dataclass(frozen=True)
class _Kernel:
    """A routine for one matrix: tensors are passed as addresses, other arguments as ``converters`` convert them."""

    function: Callable[..., Any]
    converters: tuple[Callable[[Any], Any], ...]
    symbols: str


def load(name: str, device_kind: DeviceKind) -> Baseline:
    """OpenBLAS's function for the cuBLAS routine ``name``, on CPU tensors.

    Raises ``Unavailable`` without the wheel or on a GPU, ``ValueError`` for a routine without a signature, or with one
    that differs from cblas.h's declaration.
    """
    signature = letters(name)
    if device_kind != DeviceKind.CPU:
        raise Unavailable("OpenBLAS works on host memory; on a GPU the baseline is cublas:")
    routine, _ = split(name)
    found = NAME.fullmatch(routine)
    if found is None:
        raise ValueError(f"openblas:{routine}: {why_not(routine, signature)}")
    library = _library()
    is_batched = cblas_api.is_batched(signature)
    single = (signature[:-1] if is_batched else signature).translate(_ONE_MATRIX)
    try:
        kernel = _kernel(library, found[1].lower(), found[2], single)
    except ValueError as error:
        raise misfit(name, error) from error
    notes = {"symbol": f"{kernel.symbols}, once per matrix" if is_batched else kernel.symbols, "threads": "1"}
    call = _batch_entry(kernel, signature, name) if is_batched else _entry(kernel, name)
    return Baseline(call=call, library=_version(library), notes=notes)


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


# --- entries: the cuBLAS entry's arguments to those of a kernel ---


def _entry(kernel: _Kernel, name: str) -> Callable[..., None]:
    function, converters = kernel.function, kernel.converters

    def call(*arguments: Any) -> None:
        try:
            values = [convert(value) for convert, value in zip(converters, arguments, strict=True)]
        except (KeyError, TypeError, ValueError) as error:
            raise misfit(name, error) from error
        function(*values)

    return call


def _batch_entry(kernel: _Kernel, signature: str, name: str) -> Callable[..., None]:
    """A loop over the matrices of a batch: at separate addresses (``a``), or a stride ``l`` apart.

    Strided batches are looped over, too: cblas_zgemm_batch_strided of OpenBLAS 0.3.34 counts strides in real numbers,
    so it uses half of the given stride, and other versions refuse column-major batches (OpenMathLib/OpenBLAS#5979).
    """
    kept = [position for position, letter in enumerate(signature[:-1]) if letter != "l"]
    pointers = [position for position in kept if signature[position] in "pa"]
    places = [kept.index(position) for position in pointers]
    function, converters = kernel.function, kernel.converters

    def addresses(position: int, arguments: Sequence[Any]) -> Sequence[int]:
        tensor, count = arguments[position], arguments[-1]
        if signature[position] == "a":
            listed: list[int] = tensor.tolist()
            return listed[:count]
        first, step = tensor.data_ptr(), arguments[signature.index("l", position)] * tensor.element_size()
        return [first + i * step for i in range(count)]

    def call(*arguments: Any) -> None:
        try:
            values = [convert(arguments[position]) for convert, position in zip(converters, kept, strict=True)]
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise misfit(name, error) from error
        for matrices in zip(*(addresses(position, arguments) for position in pointers), strict=True):
            for place, address in zip(places, matrices, strict=True):
                values[place] = address
            function(*values)

    return call


# --- kernels ---


def _kernel(library: ctypes.CDLL, precision: str, stem: str, signature: str) -> _Kernel:
    if not cblas_api.is_composed(precision, stem, signature):
        return _cblas(library, precision, stem, signature)
    made = {"gemm": _converted_gemm, "symv": _complex_symv, "geam": _geam, "dgmm": _dgmm}[stem]
    return made(library, precision, signature)


def _cblas(library: ctypes.CDLL, precision: str, stem: str, signature: str) -> _Kernel:
    """The CBLAS function of the same name; a real scalar result is written to the last argument."""
    typed = [place for place, letter in enumerate(signature) if letter == "e"]
    if typed:
        # Element types of complex routines are dropped: the only one that torch has is complex64, which is CBLAS's.
        plain = _cblas(library, precision, stem, signature.replace("e", ""))
        return _without(plain, typed, len(signature))
    returns = signature.endswith("r") and precision in _REAL
    symbol = cblas_api.symbol(precision, stem, signature)
    order = (ctypes.c_int,) if cblas_api.has_matrix(signature) else ()
    slots = [_slot(letter) for letter in (signature[:-1] if returns else signature)]
    function = _function(library, symbol, [*order, *(argtype for argtype, _ in slots)])
    if why := cblas_api.difference(symbol, signature):
        raise ValueError(why)
    converters = tuple(convert for _, convert in slots)
    if order:
        function = functools.partial(function, COLUMN_MAJOR)
    if not returns:
        return _Kernel(function, converters, f"scipy_{symbol}")
    real = _REAL[precision]
    function.restype = real

    def with_result(*values: Any) -> None:
        real.from_address(values[-1]).value = function(*values[:-1])

    return _Kernel(with_result, (*converters, _address), f"scipy_{symbol}")


def _without(kernel: _Kernel, places: list[int], count: int) -> _Kernel:
    """The kernel for callers that pass further arguments at ``places``, which are dropped."""
    kept = [place for place in range(count) if place not in places]
    converters: list[Callable[[Any], Any]] = [_same] * count
    for place, convert in zip(kept, kernel.converters, strict=True):
        converters[place] = convert

    def function(*values: Any) -> None:
        kernel.function(*(values[place] for place in kept))

    return _Kernel(function, tuple(converters), kernel.symbols)


def _converted_gemm(library: ctypes.CDLL, precision: str, signature: str) -> _Kernel:
    """gemm of 16-bit matrices: converted to float32, multiplied by cblas_sgemm, rounded back; float32 unconverted."""
    sgemm = _cblas(library, "s", "gemm", signature.replace("e", ""))
    types = [place for place, letter in enumerate(signature) if letter == "e"]

    def function(*values: Any) -> None:
        dtypes = [values[place] for place in types] or [torch.float16] * 3
        plain = [value for place, value in enumerate(values) if place not in types]
        transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc = plain
        if m == 0 or n == 0:
            return
        left = _matrix(a, (m, k) if transa == "N" else (k, m), lda, dtypes[0])
        right = _matrix(b, (k, n) if transb == "N" else (n, k), ldb, dtypes[1])
        out = _matrix(c, (m, n), ldc, dtypes[2])
        copies = [_column_major(each, torch.float32) for each in (left, right, out)]
        (x, ldx), (y, ldy), (z, ldz) = ((each.data_ptr(), max(each.shape[0], 1)) for each in copies)
        product = (transa, transb, m, n, k, alpha, x, ldx, y, ldy, beta, z, ldz)
        sgemm.function(*(convert(value) for convert, value in zip(_on_addresses(sgemm), product, strict=True)))
        out.copy_(copies[2])

    return _Kernel(function, _as_they_are(signature), "scipy_cblas_sgemm on copies in float32")


def _complex_symv(library: ctypes.CDLL, precision: str, signature: str) -> _Kernel:
    """Complex symv: not in CBLAS; LAPACK's has Fortran's calling convention, all arguments by address."""
    symbol = f"{precision}symv_"
    function = _function(library, symbol, [ctypes.c_void_p] * len(signature))
    scalar, numbers = _COMPLEX[precision], [place for place, letter in enumerate(signature) if letter == "i"]

    def call(uplo: str, *values: Any) -> None:
        given: list[Any] = [ctypes.c_char_p(uplo.encode()), *values]
        for place in numbers:
            given[place] = ctypes.byref(ctypes.c_int(given[place]))
        function(*given)

    converters = list(_as_they_are(signature))
    for place, letter in enumerate(signature):
        if letter == precision:
            converters[place] = complex_scalar(scalar)
    return _Kernel(call, tuple(converters), f"scipy_{symbol}")


def _geam(library: ctypes.CDLL, precision: str, signature: str) -> _Kernel:
    """geam: not in CBLAS. OpenBLAS's omatcopy computes each term (B = alpha op(A)); the second is added by columns.

    geadd is not used, since newer versions take more arguments than older ones.
    """
    omatcopy = _cblas(library, precision, "omatcopy", f"Tii{precision}pipi")
    axpy = _cblas(library, precision, "axpy", f"i{precision}pipi")
    dtype, size = _DTYPES[precision], _DTYPES[precision].itemsize

    def run(kernel: _Kernel, *values: Any) -> None:
        kernel.function(*(convert(value) for convert, value in zip(_on_addresses(kernel), values, strict=True)))

    def function(
        transa: str, transb: str, m: int, n: int, alpha: Any, a: int, lda: int, beta: Any, b: int, ldb: int, c: int,
        ldc: int,
    ) -> None:  # fmt: skip
        if m == 0 or n == 0:
            return
        terms = [each for each in ((transa, alpha, a, lda), (transb, beta, b, ldb)) if each[1] != 0]
        if not terms:
            _matrix(c, (m, n), ldc, dtype).zero_()
        for number, (trans, factor, address, ld) in enumerate(terms):
            rows, columns = (m, n) if trans == "N" else (n, m)
            if number == 0:
                run(omatcopy, trans, rows, columns, factor, address, ld, c, ldc)
                continue
            scratch = torch.empty(m * n, dtype=dtype)
            run(omatcopy, trans, rows, columns, factor, address, ld, scratch.data_ptr(), m)
            for j in range(n):
                run(axpy, m, 1.0, scratch.data_ptr() + j * m * size, 1, c + j * ldc * size, 1)

    return _Kernel(function, _as_they_are(signature), f"{omatcopy.symbols}, {axpy.symbols}")


def _dgmm(library: ctypes.CDLL, precision: str, signature: str) -> _Kernel:
    """dgmm: not in CBLAS; each row or column is copied and scaled."""
    copy = _cblas(library, precision, "copy", "ipipi")
    scal = _cblas(library, precision, "scal", f"i{precision}pi")
    dtype, scale = _DTYPES[precision], scal.converters[1]
    size = dtype.itemsize

    def function(mode: str, m: int, n: int, a: int, lda: int, x: int, incx: int, c: int, ldc: int) -> None:
        count, length = (m, n) if mode == "L" else (n, m)
        if count == 0 or length == 0:
            return
        factors = _matrix(x, (1, count), abs(incx), dtype)[0].tolist()
        steps = (lda, ldc) if mode == "L" else (1, 1)
        moves = (size, size) if mode == "L" else (lda * size, ldc * size)
        for i, factor in enumerate(reversed(factors) if incx < 0 else factors):
            copy.function(length, a + i * moves[0], steps[0], c + i * moves[1], steps[1])
            scal.function(length, scale(factor), c + i * moves[1], steps[1])

    return _Kernel(function, _as_they_are(signature), f"{copy.symbols}, {scal.symbols}")


# --- conversions ---


def _function(library: ctypes.CDLL, symbol: str, argtypes: list[Any]) -> Any:
    """A new object for the function with these types, since two routines may share a symbol. Raises ``Unavailable``."""
    try:
        function = library[f"scipy_{symbol}"]
    except AttributeError:
        step = "pip install -U scipy-openblas32"
        raise Unavailable(f"{_version(library)} has no scipy_{symbol}; {step}") from None
    function.argtypes = argtypes
    function.restype = None
    return function


def _slot(letter: str) -> tuple[Any, Callable[[Any], Any]]:
    """The ctypes type of one argument and the function that converts the entry's value to it."""
    if letter in _FLAGS:
        return ctypes.c_int, _FLAGS[letter].__getitem__
    if letter == "i":
        return ctypes.c_int, _checked_int
    if letter in _REAL:
        return _REAL[letter], float
    if letter in _COMPLEX:
        return ctypes.c_void_p, complex_scalar(_COMPLEX[letter])
    return ctypes.c_void_p, _address


def _as_they_are(signature: str) -> tuple[Callable[[Any], Any], ...]:
    """Converters of a kernel that takes Python values: only tensors become addresses."""
    given: dict[str, Callable[[Any], Any]] = {"p": _address, "i": _checked_int}
    return tuple(given.get(letter, _same) for letter in signature)


def _on_addresses(kernel: _Kernel) -> tuple[Callable[[Any], Any], ...]:
    return tuple(_same if convert is _address else convert for convert in kernel.converters)


def _address(tensor: torch.Tensor) -> int:
    """A tensor's address; unused for an array of pointers, which each matrix's own address replaces."""
    return tensor.data_ptr()


def _same(value: Any) -> Any:
    return value


def _checked_int(value: int) -> int:
    """The value. Raises ``OverflowError`` beyond the 32 bits of this OpenBLAS, since ctypes would truncate it."""
    if abs(value) > _LARGEST_INT:
        raise OverflowError(f"{value} does not fit the 32-bit integers of scipy-openblas32")
    return value


def _matrix(address: int, shape: tuple[int, int], ld: int, dtype: torch.dtype) -> torch.Tensor:
    """The column-major matrix at an address, as a view of that memory."""
    rows, columns = shape
    if rows == 0 or columns == 0:
        return torch.empty(shape, dtype=dtype)
    count = rows + (columns - 1) * ld
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return torch.frombuffer(memory, dtype=dtype, count=count).as_strided(shape, (1, ld))


def _column_major(matrix: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A copy whose columns are stored one after the other."""
    return matrix.mT.to(dtype, copy=True).contiguous().mT
