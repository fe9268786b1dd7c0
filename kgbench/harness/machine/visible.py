"""Which GPUs a process sees, by variables that have to be set before it touches one. No torch."""

from __future__ import annotations

from typing import Final

VARIABLE: Final = "CUDA_VISIBLE_DEVICES"
"""Numbers or UUIDs, with commas; empty for none."""
ORDER: Final = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
"""Variables that make CUDA number GPUs as nvidia-smi does."""
DRIVER: Final = "cuda.bindings.driver"
"""Module of the driver's calls, which ``kgbench/harness/wire/cuda.py`` makes."""
NONE: Final = {VARIABLE: ""}
"""Variables that show a process no GPU."""


def only(uuid: str) -> dict[str, str]:
    """Variables that show a process one GPU, as its number 0."""
    return {VARIABLE: uuid}
