"""Which GPU a prompt is for: the one that is named, else the one of this machine."""

from __future__ import annotations

from kgbench.harness.machine.devices import nvidia_gpus
from kgbench.prompts.gpus import Gpu, gpu_as_driven, gpu_named


def target_gpu(name: str = "") -> Gpu | None:
    """The GPU of that name; without a name the first GPU here, None where there is none. Raises UsageError."""
    if name:
        return gpu_named(name)
    here = nvidia_gpus()
    return gpu_as_driven(here[0].name, here[0].memory_gb) if here else None
