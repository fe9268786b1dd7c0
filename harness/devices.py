"""Finds the devices of this machine without torch and without touching CUDA."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

from kgbench.errors import MachineError

_FIELDS = "index,uuid,name,memory.total,driver_version"


@dataclass(frozen=True)
class Device:
    kind: str
    """``cpu`` or ``cuda``."""
    uuid: str = ""
    name: str = "CPU"
    memory_gb: float | None = None
    driver: str = ""


def find_device(wanted: str) -> Device:
    """The device to run on. ``wanted``: ``auto``, ``cpu`` or ``cuda``. Raises MachineError."""
    if wanted == "cpu":
        return Device("cpu")
    gpus = nvidia_gpus()
    if gpus:
        return gpus[0]
    if wanted == "cuda":
        raise MachineError("no NVIDIA GPU is visible here: nvidia-smi lists none; use --device cpu")
    return Device("cpu")


def nvidia_gpus() -> list[Device]:
    """GPUs that nvidia-smi lists, in the order and choice of CUDA_VISIBLE_DEVICES where that is set."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    query = [program, f"--query-gpu={_FIELDS}", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[field.strip() for field in line.split(",")] for line in answer.splitlines() if line.strip()]
    listed = {row[0]: Device("cuda", row[1], row[2], float(row[3]) * 1.048576e-3, row[4]) for row in rows}
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return list(listed.values())
    found = []
    for item in filter(None, (part.strip() for part in chosen.split(","))):
        found += [device for index, device in listed.items() if item == index or device.uuid.startswith(item)]
    return found
