"""GPUs by name, with the public numbers that a kernel's author goes by. Plain data from ``gpus.toml``; no torch."""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kgbench.core.errors import UsageError
from kgbench.core.names import did_you_mean

_TABLE: Final = Path(__file__).parent / "gpus.toml"
_IGNORED: Final = ("nvidia", "geforce", "gpu")
"""Words that names carry or leave out."""
_OTHERS: Final = frozenset(("d", "laptop", "max", "mobile", "nvl", "super", "ti"))
"""Words that make another GPU of a name, with other numbers."""
_ALIKE: Final = 0.12
"""Largest relative difference of a driver's memory from the data sheet's: some is kept for error correction."""


@dataclass(frozen=True)
class Gpu:
    """What is known of a GPU; None and empty where nothing is."""

    name: str
    capability: int | None = None
    """Compute capability, 90 for 9.0."""
    sms: int | None = None
    memory_gb: float | None = None
    bandwidth_gb_s: float | None = None
    l2_mb: float | None = None
    shared_kb_per_sm: int | None = None
    shared_kb_per_block: int | None = None
    tflops: dict[str, float] = field(default_factory=dict)
    """Peak by what is multiplied, dense."""


@functools.cache
def known_gpus() -> dict[str, Gpu]:
    """All of the table, by name, in the order in which a name is looked for."""
    rows = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return {name: Gpu(name, **row) for name, row in rows.items()}


def gpu_named(wanted: str) -> Gpu:
    """The GPU of that name in any usual spelling: ``H100``, ``h100 pcie``, ``RTX4090``. UsageError when none has it."""
    found = _find(wanted)
    if found is None:
        words = f"there is no GPU '{wanted}' in the table of numbers; {did_you_mean(wanted, known_gpus())}"
        raise UsageError("KGB522", words)
    return found


def gpu_as_driven(name: str, memory_gb: float | None) -> Gpu:
    """The GPU that a driver calls so; one that is not in the table has its name and its memory alone."""
    found = _find(name)
    if found is None or found.memory_gb is None or memory_gb is None:
        return found or Gpu(name, memory_gb=None if memory_gb is None else round(memory_gb))
    alike = abs(memory_gb / found.memory_gb - 1) < _ALIKE
    return found if alike else Gpu(name, memory_gb=round(memory_gb))


def _find(wanted: str) -> Gpu | None:
    parts = _words(wanted)
    if parts & _OTHERS:
        return None
    return next((gpu for name, gpu in known_gpus().items() if _words(name) <= parts), None)


def _words(name: str) -> frozenset[str]:
    """Of ``NVIDIA GeForce RTX 4090`` rtx and 4090; of ``RTX4090`` the same."""
    apart = re.sub(r"(?<=rtx)(?=\d)", " ", name.casefold())
    return frozenset(re.findall(r"[a-z0-9]+", apart)) - frozenset(_IGNORED)
