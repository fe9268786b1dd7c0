"""Finds the library call that a problem names: ``load_baseline("cublas:cublasSgemm_v2", "cuda")``.

Each source has a module with one ``load(name, device_kind)``; this module selects it. A baseline takes the entry's
arguments. Everything that is created once (handles, workspaces, loaded libraries) is created while it is loaded, so
that a timed call contains only the call.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from kgbench.core import user_modules
from kgbench.core.kinds import DeviceKind

LOADERS: Final = {
    "aten": "kgbench.baselines.aten",
    "cublas": "kgbench.baselines.cublas",
    "openblas": "kgbench.baselines.openblas",
    "vllm": "kgbench.baselines.vllm",
}


class Unavailable(Exception):
    """This machine cannot run the baseline. The text says why and what would help."""


@dataclass(frozen=True)
class Baseline:
    """A library call that behaves like its problem's entry."""

    call: Callable[..., Any]
    """Takes the entry's arguments in the entry's order, keyword-only ones by keyword: tensors and Python values, flags
    as text. Writes the written arguments or returns the tensor, asynchronously on the current CUDA stream."""
    library: str
    """Name and version of the library, for example ``cuBLAS 13.1.0``."""
    notes: dict[str, str] = field(default_factory=dict)
    """Properties of the call that a reader of its time must know, for example ``{"math_mode": "…, TF32 off"}``."""


def load_baseline(target: str, device_kind: DeviceKind) -> Baseline:
    """The baseline for a problem file's ``baseline`` or ``fallback`` key.

    ``target`` is ``aten:softmax.int``, ``cublas:…``, ``openblas:…``, ``vllm:…`` or the dotted path
    ``package.module:function`` of a fallback or of a user's library call. ``device_kind`` is ``cuda`` or ``cpu``.

    Raises ``Unavailable`` when this machine cannot run it, ``ValueError`` when ``target`` names nothing.
    """
    if device_kind not in tuple(DeviceKind):
        raise ValueError(f"device kind {device_kind!r}: expected one of {', '.join(DeviceKind)}")
    source, colon, name = target.partition(":")
    if not colon or not name:
        raise ValueError(
            f"baseline {target!r}: expected SOURCE:NAME with one of {', '.join(LOADERS)}, or package.module:function"
        )
    if source in LOADERS:
        baseline: Baseline = importlib.import_module(LOADERS[source]).load(name, device_kind)
        return baseline
    return _load_dotted(source, name)


def load_function(path: str) -> Callable[..., Any]:
    """The function of a dotted path ``package.module:function``. Raises ``ValueError``, which names what is missing."""
    module_name, _, name = path.partition(":")
    user_modules.make_importable()
    try:
        function = getattr(importlib.import_module(module_name), name)
    except ModuleNotFoundError as error:
        raise ValueError(f"{path!r}: there is no module {error.name!r}") from error
    except AttributeError as error:
        raise ValueError(f"{path!r}: module {module_name!r} has no function {name!r}") from error
    if not callable(function):
        raise ValueError(f"{path!r}: expected a function, got {type(function).__name__}")
    result: Callable[..., Any] = function
    return result


def _load_dotted(module_name: str, name: str) -> Baseline:
    """A fallback of kgbench, or a user's library call, whose module may name the library: ``LIBRARY = "… 1.2"``."""
    call = load_function(f"{module_name}:{name}")
    if not module_name.startswith(f"{__package__}."):
        return Baseline(call, str(getattr(sys.modules[module_name], "LIBRARY", f"{module_name}:{name}")))
    import torch

    return Baseline(
        call,
        library=f"PyTorch {torch.__version__} expression",
        notes={"fallback": f"{name} in plain PyTorch, in the problem's own dtypes"},
    )
