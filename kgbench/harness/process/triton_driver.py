"""The C module through which Triton reaches the driver: built once for all workers.

Triton compiles it with the system's compiler before its first launch, into a cache folder; each worker's is its own and
empty, so that each would wait for that compiler. The bytes are kept in memory, and no worker can change another's.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

Files = Mapping[str, bytes]
"""What lies in a cache folder of Triton's, by the path within it."""


def built() -> Files:
    """The module as Triton builds it here; empty where it cannot, as without a driver.

    A child builds it, since loading it would leave the driver's library in the caller.
    """
    with contextlib.suppress(OSError), tempfile.TemporaryDirectory(prefix="kgbench-triton-") as folder:
        child = os.fork()
        if child == 0:
            _build(folder)
        _, status = os.waitpid(child, 0)
        if status == 0:
            return {str(file.relative_to(folder)): file.read_bytes() for file in Path(folder).rglob("*.so")}
    return {}


def _build(folder: str) -> NoReturn:
    with contextlib.suppress(BaseException):
        os.environ["TRITON_CACHE_DIR"] = folder
        _load()
        os._exit(0)
    os._exit(1)


def _load() -> None:
    from triton.backends.nvidia.driver import CudaUtils

    CudaUtils()


def give(files: Files, folder: Path) -> None:
    """Put the files into a worker's cache folder, as its own user. Where that fails, Triton builds in the worker."""
    with contextlib.suppress(OSError):
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
