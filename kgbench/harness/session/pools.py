"""The devices of a session: which are taken, how many candidates fit on each, and what is known of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kgbench.core.errors import numbered
from kgbench.core.kinds import DeviceKind
from kgbench.harness.machine.cores import for_turns
from kgbench.harness.machine.devices import Device
from kgbench.harness.machine.gpu_lock import GpuLock
from kgbench.harness.machine.shared_page import MAX_REFEREES, SharedPage
from kgbench.harness.wire.protocol import Channel

GB_PER_SLOT: Final = 12.0
"""Gigabytes of a GPU's memory that one slot is given: contexts, buffers and a bench case of referee, candidate and
library."""
MAX_SLOTS: Final = 16
"""Slots per device where ``jobs`` does not say how many."""
LIBRARY_TIMES_S: Final = 300.0
"""Seconds for which a library's times stand in for new ones: a device that gets warm gets slower."""


@dataclass(frozen=True)
class Referee:
    """A process that judges, and the channel to it."""

    pid: int
    channel: Channel


@dataclass(eq=False)
class Slot:
    """One referee's place on a device."""

    pool: DevicePool
    number: int
    """Among the slots of its device; where its referee stands in the device's shared page."""
    referee: Referee
    problem_id: str = ""
    """The problem judged last, whose library and references are loaded here."""
    exclusive: bool = False
    """True while this slot has its device exclusively."""


@dataclass(eq=False)
class DevicePool:
    """One device of a session with its slots."""

    device: Device
    page: SharedPage
    most: int
    """Candidates that may be at work at once."""
    lock: GpuLock | None = None
    turn_cores: tuple[int, ...] = ()
    """Processor cores for turns of this device."""
    idle: list[Slot] = field(default_factory=list)
    busy: list[Slot] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)
    """Slot numbers in use, those that are being started included."""
    exclusive: bool = False
    """True while a slot has the device exclusively, or waits for that."""
    fault: str = ""
    """Why the device is no longer used; empty while it works."""
    library_times: dict[str, tuple[float, dict[str, Any]]] = field(default_factory=dict)
    """The library's time by problem: when it was measured, and the measurement."""

    def learn(self, problem_id: str, times: dict[str, Any]) -> None:
        """Store the library times just measured beside a candidate."""
        if times:
            self.library_times[problem_id] = (time.monotonic(), times)

    def known_times(self, problem_id: str) -> dict[str, Any]:
        """Stored library times of this device, if they are recent."""
        taken, times = self.library_times.get(problem_id, (0.0, {}))
        return times if time.monotonic() - taken < LIBRARY_TIMES_S else {}


def take_devices(
    found: Sequence[Device], wanted: str, gpus: int, jobs: int, cores: int, say: Callable[[str], None]
) -> list[DevicePool]:
    """Lock as many GPUs as are wanted and free; when none is, wait for the first.

    ``wanted``, ``gpus``, ``jobs``, ``cores``: see ``Settings``. Raises MachineError where a lock's file cannot be used.
    """
    cores = cores or len(os.sched_getaffinity(0))
    if found[0].kind == DeviceKind.CPU:
        return [DevicePool(found[0], SharedPage.create(), _most_slots(found[0], cores, jobs))]
    limit = gpus or (len(found) if ":" in wanted else 1)
    locks = [(device, GpuLock(device.uuid)) for device in found]
    taken: list[tuple[Device, GpuLock]] = []
    for device, lock in locks:
        if len(taken) < limit and lock.try_take():
            taken.append((device, lock))
    if not taken:
        device, lock = locks[0]
        lock.wait(lambda words: say(numbered("KGB605", f"GPU {device.index} ({device.name}): {words}")))
        taken.append((device, lock))
    elif len(taken) < min(limit, len(locks)):
        say(numbered("KGB606", f"{len(taken)} of {min(limit, len(locks))} GPUs are free; going on with these"))
    elif len(taken) < len(locks) and not gpus:
        say(numbered("KGB628", f"1 of {len(locks)} GPUs is used; --gpus all or --device cuda:0,1 uses more"))
    mine = os.sched_getaffinity(0)
    return [
        DevicePool(
            device,
            SharedPage.create(),
            _most_slots(device, cores // len(taken), jobs),
            lock,
            for_turns(mine, place, len(taken)),
        )
        for place, (device, lock) in enumerate(taken)
    ]


def _most_slots(device: Device, cores: int, jobs: int) -> int:
    if jobs:
        return min(jobs, MAX_REFEREES)
    memory = cores if device.memory_gb is None else int(device.memory_gb / GB_PER_SLOT)
    return max(1, min(cores, memory, MAX_SLOTS))
