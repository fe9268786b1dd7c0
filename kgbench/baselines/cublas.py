"""cuBLAS through ctypes: the libcublas that PyTorch brings, one handle, one generic caller for every routine.

The signatures come from ``routines.py``. Not thread-safe: calls pass scalars through shared buffers.
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
from kgbench.baselines.routines import (
    complex_scalar,
    half_scalar,
    letters,
    misfit,
    real_scalar,
    status_name,
    version_text,
)
from kgbench.core.kinds import DeviceKind
from kgbench.problem.blas import split

WORKSPACE_BYTES: Final = 32 * 1024 * 1024
"""Workspace in bytes, as cuBLAS recommends on Hopper (cublasSetWorkspace); a smaller one forbids some kernels."""

POINTER_MODE_HOST: Final = 0
POINTER_MODE_DEVICE: Final = 1
MATH_MODE: Final = 0 | 16
"""Math mode of every call: CUBLAS_DEFAULT_MATH with CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION.

float32 is float32 (TF32 is opt-in by CUBLAS_TF32_TENSOR_OP_MATH), partial sums of 16-bit products stay in float32.
CUBLAS_PEDANTIC_MATH would also be exact, but it forbids fast kernels that are in common use.
"""

_FLAGS: Final[dict[str, dict[str, int]]] = {
    "T": {"N": 0, "T": 1, "C": 2},
    "U": {"L": 0, "U": 1},
    "L": {"L": 0, "R": 1},
    "D": {"N": 0, "U": 1},
}
_INTEGERS: Final[dict[str, Any]] = {"i": ctypes.c_int, "I": ctypes.c_int64, "l": ctypes.c_longlong}
_DATA_TYPES: Final[dict[torch.dtype, int]] = {
    torch.float32: 0,
    torch.float64: 1,
    torch.float16: 2,
    torch.int8: 3,
    torch.complex64: 4,
    torch.complex128: 5,
    torch.bfloat16: 14,
}
"""Value of cudaDataType, by torch's name of the dtype."""
_SCALARS: Final[dict[str, tuple[Any, Any]]] = {
    "s": (ctypes.c_float, real_scalar),
    "d": (ctypes.c_double, real_scalar),
    "c": (ctypes.c_float, complex_scalar),
    "z": (ctypes.c_double, complex_scalar),
}


class CublasError(RuntimeError):
    """A cuBLAS call answered with a status other than success."""


def load(name: str, device_kind: DeviceKind) -> Baseline:
    """The routine ``name`` (``cublasSgemm_v2``) on the current CUDA device.

    Raises ``Unavailable`` without a GPU or a libcublas, ``ValueError`` for a routine without a signature.
    """
    signature = letters(name)
    if device_kind != DeviceKind.CUDA or not torch.cuda.is_available():
        raise Unavailable("cuBLAS needs an NVIDIA GPU and a CUDA build of torch; on a CPU the baseline is openblas:")
    session = _session()
    routine, _ = split(name)
    if not hasattr(session.library, routine):
        raise Unavailable(f"{session.path} has no {routine}; a newer cuBLAS may")
    notes = {
        "math_mode": "CUBLAS_DEFAULT_MATH, TF32 off, no reduced-precision reduction",
        "pointer_mode": "results on the device" if "r" in signature else "scalars on the host",
        "workspace": f"{WORKSPACE_BYTES // 2**20} MiB",
        "path": session.path.name,
    }
    if "h" in signature:
        notes["compute_type"] = "float16, as the routine has it: sums may be kept in 16 bits"
    return Baseline(call=_caller(session, name, signature), library=f"cuBLAS {session.version}", notes=notes)


def check(status: int, what: str) -> None:
    """Raise ``CublasError`` unless ``status`` is success."""
    if status != 0:
        raise CublasError(f"{what}: {status_name(status)} ({status})")


class Session:
    """One libcublas with one handle on the current device, and the handle's current settings."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.library = ctypes.CDLL(str(path))
        self.handle = ctypes.c_void_p()
        self._stream: int | None = None
        self._pointer_mode: int | None = None
        torch.cuda.init()  # type: ignore[no-untyped-call]
        check(self._plain("cublasCreate_v2")(ctypes.byref(self.handle)), "cublasCreate_v2")
        # The handle is never destroyed: at exit the driver may have shut down already, and the process's end frees it.
        self._workspace = torch.empty(WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
        self._set_stream = self._plain("cublasSetStream_v2", ctypes.c_void_p, ctypes.c_void_p)
        self._set_workspace = self._plain("cublasSetWorkspace_v2", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
        self._set_pointer_mode = self._plain("cublasSetPointerMode_v2", ctypes.c_void_p, ctypes.c_int)
        set_math_mode = self._plain("cublasSetMathMode", ctypes.c_void_p, ctypes.c_int)
        check(set_math_mode(self.handle, MATH_MODE), "cublasSetMathMode")
        self.version = self._read_version()
        self.prepare(POINTER_MODE_HOST)

    def prepare(self, pointer_mode: int) -> None:
        """Bind the handle to the current stream and set the pointer mode; calls cuBLAS only for changes."""
        stream = torch.cuda.current_stream().cuda_stream
        if stream != self._stream:
            check(self._set_stream(self.handle, stream), "cublasSetStream_v2")
            # cublasSetStream resets the handle to cuBLAS's own workspace pool.
            address = self._workspace.data_ptr()
            check(self._set_workspace(self.handle, address, WORKSPACE_BYTES), "cublasSetWorkspace_v2")
            self._stream = stream
        if pointer_mode != self._pointer_mode:
            check(self._set_pointer_mode(self.handle, pointer_mode), "cublasSetPointerMode_v2")
            self._pointer_mode = pointer_mode

    def function(self, name: str, argtypes: list[Any]) -> Callable[..., int]:
        """The routine as a ctypes function that takes the handle first."""
        return self._plain(name, ctypes.c_void_p, *argtypes)

    def _plain(self, name: str, *argtypes: Any) -> Callable[..., int]:
        function = getattr(self.library, name)
        function.restype = ctypes.c_int
        if argtypes:
            function.argtypes = argtypes
        return function  # type: ignore[no-any-return]

    def _read_version(self) -> str:
        version = ctypes.c_int()
        read = self._plain("cublasGetVersion_v2", ctypes.c_void_p, ctypes.POINTER(ctypes.c_int))
        check(read(self.handle, ctypes.byref(version)), "cublasGetVersion_v2")
        return version_text(version.value)


@functools.cache
def _session() -> Session:
    return Session(find_libcublas())


def _caller(session: Session, name: str, signature: str) -> Callable[..., None]:
    """The routine as a function of the entry's arguments."""
    slots = [_slot(letter) for letter in signature]
    routine, _ = split(name)
    function = session.function(routine, [argtype for argtype, _ in slots])
    converters = tuple(convert for _, convert in slots)
    pointer_mode = POINTER_MODE_DEVICE if "r" in signature else POINTER_MODE_HOST
    prepare, handle = session.prepare, session.handle

    def call(*arguments: Any) -> None:
        prepare(pointer_mode)
        try:
            converted = [convert(value) for convert, value in zip(converters, arguments, strict=True)]
        except (KeyError, TypeError, ValueError) as error:
            raise misfit(name, error) from error
        status = function(handle, *converted)
        if status:
            check(status, routine)

    call.__name__ = routine
    return call


def _slot(letter: str) -> tuple[Any, Callable[[Any], Any]]:
    """The ctypes type of one argument and the function that converts the entry's value to it."""
    if letter in _FLAGS:
        return ctypes.c_int, _FLAGS[letter].__getitem__
    if letter in _INTEGERS:
        return _INTEGERS[letter], int
    if letter in _SCALARS:
        return ctypes.c_void_p, _SCALARS[letter][1](_SCALARS[letter][0])
    if letter == "h":
        return ctypes.c_void_p, half_scalar()
    if letter == "e":
        return ctypes.c_int, _DATA_TYPES.__getitem__
    return ctypes.c_void_p, torch.Tensor.data_ptr


def find_libcublas() -> Path:
    """The libcublas of this process's PyTorch; raises ``Unavailable`` when there is none.

    First what is mapped already (PyTorch links it), then cuda-pathfinder, then the NVIDIA wheels' folders.
    """
    for search in (_mapped, _by_pathfinder, _in_wheels):
        path = search()
        if path is not None:
            return path
    raise Unavailable(
        "no libcublas found: not mapped by torch, not known to cuda-pathfinder, not in an installed nvidia wheel; "
        "install a CUDA build of torch"
    )


def _mapped(maps: Path = Path("/proc/self/maps")) -> Path | None:
    if not maps.exists():
        return None
    for line in maps.read_text().splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and Path(fields[5]).name.startswith("libcublas.so"):
            return Path(fields[5])
    return None


def _by_pathfinder() -> Path | None:
    try:
        pathfinder = importlib.import_module("cuda.pathfinder")
    except ImportError:
        return None
    try:
        return Path(pathfinder.load_nvidia_dynamic_lib("cublas").abs_path)
    except RuntimeError:  # its DynamicLibNotFoundError is one
        return None


def _in_wheels() -> Path | None:
    spec = importlib.util.find_spec("nvidia")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    found = sorted(path for folder in folders for path in Path(folder).glob("*/lib/libcublas.so.*"))
    return found[-1] if found else None
