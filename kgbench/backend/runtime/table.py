"""What the package holds: per operator a kernel, the calls it was judged in, and on which device."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .guard import Judged

FILE: Final = "table.json"


@dataclass(frozen=True)
class Parameter:
    """One of the entry's."""

    name: str
    type: str
    """The type as kgbench's problem files write it: ``Tensor``, ``list[int]``, ``Scalar`` …"""
    keyword_only: bool
    written: bool
    """The kernel changes this tensor."""


@dataclass(frozen=True)
class Operator:
    """One overload of ATen, one operator of vLLM or one routine of cuBLAS, and the kernel for it."""

    source: str
    """``aten``, ``vllm`` or ``cublas``."""
    name: str
    """``aten::add.Tensor``, ``_C::rms_norm``, ``cublasSgemm_v2``."""
    module: str
    """Module below ``kernels``."""
    entries: tuple[str, ...]
    """Names of the function there; the first that there is counts."""
    parameters: tuple[Parameter, ...]
    returned: str
    """The written argument that comes back; empty where a new value does."""
    deterministic: bool
    """Equal calls gave equal bits whenever that was compared."""
    judged: Mapping[str, Any]

    def guard(self) -> Judged:
        return Judged(self.judged, [each.name for each in self.parameters])

    def kernel(self) -> Callable[..., Any]:
        """The function. Raises RuntimeError where its module cannot be imported here."""
        where = f"{__package__}.kernels.{self.module}"
        try:
            module = importlib.import_module(where)
        except Exception as error:
            words = f"{self.name}: its kernel {where} cannot be imported: {type(error).__name__}: {error}"
            raise RuntimeError(words) from error
        for name in self.entries:
            if callable(found := getattr(module, name, None)):
                return found  # type: ignore[no-any-return]
        raise RuntimeError(f"{self.name}: {where} defines none of {', '.join(self.entries)}")


@dataclass(frozen=True)
class Device:
    """Where the kernels were judged."""

    kind: str
    """``cuda`` or ``cpu``."""
    name: str
    """The GPU's name as the driver gives it. A kernel that is correct and fast on one GPU need be neither on another.
    """
    interpreted: bool
    """True where kernels ran in Triton's interpreter."""

    def check_interpreter(self) -> None:
        """Raises RuntimeError where Triton would not interpret the kernels that were judged so."""
        if self.interpreted and os.environ.get("TRITON_INTERPRET") != "1":
            words = "these kernels were judged on a CPU, in Triton's interpreter: start Python with TRITON_INTERPRET=1"
            raise RuntimeError(words)


@dataclass(frozen=True)
class Table:
    device: Device
    operators: tuple[Operator, ...]


def read_table() -> Table:
    """The table of this package."""
    data = json.loads((Path(__file__).parent / FILE).read_text(encoding="utf-8"))
    return Table(Device(**data["device"]), tuple(map(_operator, data["operators"])))


def _operator(data: Mapping[str, Any]) -> Operator:
    parameters = tuple(Parameter(**each) for each in data["parameters"])
    kept = {key: data[key] for key in ("source", "name", "module", "returned", "deterministic", "judged")}
    return Operator(**kept, entries=tuple(data["entries"]), parameters=parameters)
