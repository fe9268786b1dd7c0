"""Finds the devices of this machine without torch and without touching CUDA."""

from __future__ import annotations

import dataclasses
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from kgbench.core.errors import MachineError, UsageError
from kgbench.core.kinds import DeviceKind
from kgbench.harness.machine import visible

_FIELDS = "index,uuid,name,memory.total,driver_version"


@dataclass(frozen=True)
class Device:
    kind: DeviceKind
    uuid: str = ""
    name: str = "CPU"
    memory_gb: float | None = None
    driver: str = ""

    index: int = 0
    """Position among the GPUs that may be used, from 0."""


def find_devices(wanted: str) -> list[Device]:
    """All devices that may be run on. ``wanted``: ``auto``, ``cpu``, ``cuda``, or GPUs by number as in ``cuda:0,2``.

    Raises MachineError when there is none like that, UsageError when it is none of the four.
    """
    kind, _, numbers = wanted.partition(":")
    if kind not in ("auto", *DeviceKind) or (numbers and kind != DeviceKind.CUDA):
        raise UsageError("KGB111", f"device {wanted!r}: there is auto, cpu, cuda, and cuda:0,2 for chosen GPUs")
    if kind == DeviceKind.CPU:
        return [Device(DeviceKind.CPU)]
    gpus = nvidia_gpus()
    if not gpus and kind == "auto":
        return [Device(DeviceKind.CPU)]
    if not gpus:
        raise MachineError("KGB305", "no NVIDIA GPU is visible here: nvidia-smi lists none; use --device cpu")
    if not numbers:
        return gpus
    chosen = []
    for text in numbers.split(","):
        if not text.isdigit():
            raise UsageError("KGB112", f"device {wanted!r}: {text!r} is no GPU's number; write for example cuda:0,2")
        if int(text) >= len(gpus):
            raise MachineError("KGB306", f"device {wanted!r}: there is no GPU {text} here, only 0 to {len(gpus) - 1}")
        chosen.append(gpus[int(text)])
    return list(dict.fromkeys(chosen))


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
    listed = {row[0]: Device(DeviceKind.CUDA, row[1], row[2], float(row[3]) * 1.048576e-3, row[4]) for row in rows}
    chosen = os.environ.get(visible.VARIABLE)
    if chosen is None:
        return _numbered(listed.values())
    found: list[Device] = []
    for item in filter(None, (part.strip() for part in chosen.split(","))):
        found += [device for index, device in listed.items() if item == index or device.uuid.startswith(item)]
    return _numbered(found)


def busy_percent(uuid: str) -> float | None:
    """How busy a GPU is, by its driver's last sample of up to a second; None where that cannot be asked."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = [program, f"--id={uuid}", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=30, check=True).stdout
        return float(answer.strip())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _numbered(gpus: Iterable[Device]) -> list[Device]:
    return [dataclasses.replace(device, index=index) for index, device in enumerate(gpus)]
