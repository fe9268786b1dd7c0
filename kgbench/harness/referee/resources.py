"""What a referee keeps from candidate to candidate: its device, how workers are started on it, and the library."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import torch

from kgbench.core.kinds import DeviceKind
from kgbench.harness.clock.library import LibrarySide
from kgbench.harness.clock.peaks import peaks
from kgbench.harness.machine.settings import RefereeSettings
from kgbench.harness.machine.timing_lock import TimingLock
from kgbench.harness.referee.first_calls import FirstCalls
from kgbench.harness.referee.starting import Starter
from kgbench.harness.sandbox.plan import Plan
from kgbench.harness.verdict.judge import warm_up
from kgbench.harness.wire.device import GPU
from kgbench.harness.wire.protocol import Channel
from kgbench.harness.workers.handle import Role
from kgbench.harness.workers.started import Worker


class Resources:
    """One referee's device and everything that it uses there for every candidate."""

    def __init__(self, server: Channel, settings: RefereeSettings, plan: Plan, turns: TimingLock) -> None:
        self.settings = settings
        self.plan = plan
        self.turns = turns
        self.device = torch.device("cuda", 0) if settings.device_kind == DeviceKind.CUDA else torch.device("cpu")
        warm_up()
        if settings.device_kind == DeviceKind.CUDA:
            torch.zeros(1, device=self.device)
        self.starter = Starter(server, settings, plan, turns)
        self.library = LibrarySide(self.start_trusted, settings.device_kind, settings.deadlines)
        self.first_calls = FirstCalls()
        self.peaks = settings.peaks
        """Measured peaks of the device (``peaks.py``); None where unknown."""
        if self.peaks is None and settings.number == 0 and settings.timing:
            self.peaks = peaks(self.device)
        self.memory_gb = 0.0
        """Memory of the device, or of the machine where that is a CPU, in units of 1e9 bytes."""
        self.capability: int | None = None
        """Compute capability, 90 for 9.0; None on a CPU."""
        if settings.device_kind == DeviceKind.CPU:
            self.memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
        else:
            self.memory_gb = GPU.memory_bytes() / 1e9
            self.capability = GPU.capability()

    def start_trusted(self) -> Worker:
        """A worker that runs no candidate. Raises HarnessFailed."""
        return self.starter.start_trusted(Role.LIBRARY)

    def properties(self) -> dict[str, Any]:
        """The GPU's, by their names; empty without one."""
        return GPU.properties() if self.device.type == "cuda" else {}

    def facts(self) -> dict[str, Any]:
        """What the run's record says about this device and its software."""
        name = _cpu_name()
        if self.device.type == "cuda":
            name = GPU.name()
        return {
            "kind": self.device.type,
            "name": name,
            "memory_gb": self.memory_gb,
            "versions": {"torch": torch.__version__, "cuda": GPU.version()},
            "peaks": self.peaks,
        }


def _cpu_name() -> str:
    """The processor's model name and the number of cores this process may use."""
    cores = len(os.sched_getaffinity(0))
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        return f"{model}, {cores} cores"
    return f"CPU, {cores} cores"
