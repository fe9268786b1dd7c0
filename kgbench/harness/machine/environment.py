"""The environment of the fork server, and so of every worker: an allow-list, final before Python starts."""

from __future__ import annotations

import os
import sysconfig
import tempfile
from typing import Final

from kgbench.core.kinds import DeviceKind
from kgbench.harness.machine import visible

ALLOWED: Final = (
    "PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "CUDA_HOME", "TZ",
)  # fmt: skip
"""Variables of the user's environment that a worker may see. No key is among them."""
SOUND_PRODUCTS: Final = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_BF16"}
"""Variables without which PyTorch's bfloat16 products on a CPU with AMX read beyond the end of a row."""
THREADS: Final = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
"""Variables that limit libraries to one thread: forks of a server that ran a parallel operation hang, and both sides
must compare alike.
"""


def environment(device_kind: DeviceKind) -> dict[str, str]:
    """Variables for a kind of device. ``TRITON_INTERPRET`` is read when triton is imported, so it is set here."""
    chosen = {name: os.environ[name] for name in ALLOWED if name in os.environ}
    # Programs that were installed as packages, such as ninja, are found without the environment being activated.
    chosen["PATH"] = os.pathsep.join(filter(None, (chosen.get("PATH"), sysconfig.get_path("scripts"))))
    chosen |= dict.fromkeys(THREADS, "1")
    # cupy chooses its cache folder when it is imported, before there is a worker with a folder of its own.
    chosen |= {"CUPY_CACHE_IN_MEMORY": "1", "CUPY_CACHE_DIR": tempfile.gettempdir()}
    # PyTorch's tracer would write its own news where a candidate's output goes.
    chosen["KINETO_LOG_LEVEL"] = "99"
    # A worker's user has no name, and PyTorch's compiler asks for one.
    chosen["USER"] = "kgbench"
    # Inductor's own compiling processes find no GPU in a sandbox; a worker compiles in itself.
    chosen["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    chosen |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1", **visible.ORDER}
    # Else a process's past decides whether a result's memory is mapped, and its pages fetched, again in each call; what
    # a candidate sets for itself the library has, too (docs/design/0002-clock.md). Some of a GPU's operators work here.
    chosen |= {"MALLOC_MMAP_THRESHOLD_": str(32 << 20), "MALLOC_TRIM_THRESHOLD_": str(256 << 20)}
    chosen |= SOUND_PRODUCTS
    if device_kind == DeviceKind.CPU:
        chosen |= {"TRITON_INTERPRET": "1", **visible.NONE}
    return chosen
