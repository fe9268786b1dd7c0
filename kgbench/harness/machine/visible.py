"""Which GPUs a process sees, by variables that have to be set before it touches one. No torch."""

from __future__ import annotations

from typing import Final

VARIABLE: Final = "CUDA_VISIBLE_DEVICES"
"""Numbers or UUIDs, with commas; empty for none."""
ORDER: Final = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Makes numbers those of nvidia-smi."""
DRIVER: Final = "cuda.bindings.driver"
"""Module of the driver's calls, which ``kgbench/harness/wire/cuda.py`` makes."""
NONE: Final = {VARIABLE: ""}
"""No GPU at all."""


def only(uuid: str) -> dict[str, str]:
    """One GPU, which is number 0 in that process."""
    return {VARIABLE: uuid}
