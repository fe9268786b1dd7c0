"""How long a model takes without and with an exported package: whole calls, and without the time of their launches."""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from kgbench.core.text import told
from kgbench.harness.wire.device import GPU

SIDES: Final = ("without", "with")
WARM_CALLS: Final = 3
"""Calls before one is recorded: libraries prepare themselves in the first ones, which a recording does not allow."""

Enabled = Callable[[], AbstractContextManager[Any]]
"""The block in which the package's kernels are in place."""


def speed(call: Callable[[str], Any], enabled: Enabled, repeats: int, device: str) -> dict[str, float]:
    """Medians in milliseconds of ``call(side)``, alternating between both sides, each in its own state."""
    wait: Callable[[], Any] = GPU.wait if device.startswith("cuda") else (lambda: None)
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(repeats):
        for side in SIDES:
            with _state(side, enabled):
                wait()
                begun = time.perf_counter()
                call(side)
                wait()
                times[side].append((time.perf_counter() - begun) * 1e3)
    before, after = (statistics.median(times[side]) for side in SIDES)
    return {"without_ms": before, "with_ms": after, "ratio": before / after}


def speed_recorded(
    work: Callable[[str], Any], enabled: Enabled, repeats: int, device: str
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """The device's part of ``work(side)`` alone, recorded on each side and repeated; and what it returned, by side.

    ``{"why": …}`` where it cannot be recorded, such as where a model waits for the device.
    """
    replays, results = {}, {}
    try:
        for side in SIDES:
            with _state(side, enabled):
                replays[side], results[side] = _recorded(functools.partial(work, side))
        found: dict[str, Any] = speed(lambda side: replays[side](), nullcontext, repeats, device)
    except Exception as error:  # whatever a model or a kernel does
        return {"why": f"{type(error).__name__}: {told(error, 200)}"}, {}
    return found, results


def _state(side: str, enabled: Enabled) -> AbstractContextManager[Any]:
    return enabled() if side == "with" else nullcontext()


def _recorded(work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
    with GPU.another_stream():
        for _ in range(WARM_CALLS):
            work()
    GPU.wait()
    return GPU.recorded(work)
