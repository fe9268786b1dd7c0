"""What compilers wrote into a candidate's folder, read from outside."""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kgbench.harness.machine import processes

KINDS: Final = (".so", ".o", ".cubin", ".fatbin", ".ptx")
"""Ends of the names of files that hold compiled kernels."""
MOST_BYTES: Final = 64 << 20
"""Size of such a file at most; libraries with kernels for many uses are larger."""
CACHES: Final = ("triton_cache_dir", "cupy_cache_dir", "torchinductor_cache_dir", ".cache", ".nv", "cuda_cache_path")
"""Folders in which Triton, CuPy and PyTorch keep kernels, their own ones too."""
MARKS: Final = (b"cublasCreate", b"cudnnCreate", b"cusparseCreate", b"cusolverDnCreate", b"_ZN2at6native10")
"""Bytes that occur in a library's file. A copied library in the candidate's folder does not count as built by the
candidate.
"""


def is_built(supervisor: int, name: str) -> bool:
    """Whether a name stands in a file that was compiled into the folder of a supervisor's worker."""
    return any(is_in(path, name) for path in _compiled(supervisor))


def is_in(path: Path, name: str) -> bool:
    """Whether a name stands in a compiled file, which may be gone by now."""
    with contextlib.suppress(OSError):
        return _holds(str(path), path.stat().st_mtime_ns, name.encode())
    return False


def _compiled(supervisor: int) -> Iterator[Path]:
    pattern = f"kgbench-worker-*-{supervisor}-*"
    for pid in processes.descendants(supervisor)[:1]:
        for folder in Path(f"/proc/{pid}/root{tempfile.gettempdir()}").glob(pattern):
            yield from compiled_below(folder)


def compiled_below(folder: Path) -> Iterator[Path]:
    """Files of compiled kernels in a folder and those below it, as deep as its owner made them."""
    left = [str(folder)]
    while left:
        with contextlib.suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    left += [] if entry.name in CACHES else [entry.path]
                elif Path(entry.name).suffix in KINDS and entry.is_file(follow_symlinks=False):
                    yield Path(entry.path)


@functools.lru_cache(maxsize=4096)
def _holds(path: str, changed_ns: int, name: bytes) -> bool:
    """``changed_ns``: modification time of the file, which tells two files of one name apart."""
    with contextlib.suppress(OSError, ValueError), open(path, "rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if len(data) <= MOST_BYTES and data.find(name) >= 0:
            return not any(data.find(mark) >= 0 for mark in MARKS)
    return False
