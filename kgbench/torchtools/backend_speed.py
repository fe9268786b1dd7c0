"""How long a model takes without and with an exported package: whole calls, and without the time of their launches."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final

from kgbench.core.text import told
from kgbench.harness.wire.device import GPU

SIDES: Final = ("without", "with")
WARM_CALLS: Final = 3
"""Calls before one is recorded: libraries prepare themselves in the first ones, which a recording does not allow."""


def speed(call: Callable[[str], Any], repeats: int, device: str) -> dict[str, float]:
    """Medians in milliseconds of ``call(side)``, alternating between both sides."""
    wait: Callable[[], Any] = GPU.wait if device.startswith("cuda") else (lambda: None)
    times: dict[str, list[float]] = {side: [] for side in SIDES}
    for _ in range(repeats):
        for side in SIDES:
            wait()
            begun = time.perf_counter()
            call(side)
            wait()
            times[side].append((time.perf_counter() - begun) * 1e3)
    before, after = (statistics.median(times[side]) for side in SIDES)
    return {"without_ms": before, "with_ms": after, "ratio": before / after}


def speed_recorded(
    work: Callable[[str], Any], enabled: Callable[[], AbstractContextManager[Any]], repeats: int, device: str
) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """The device's part of ``work(side)`` alone, recorded on each side and repeated; and what it returned, by side.

    ``{"why": …}`` where it cannot be recorded, such as where a model waits for the device.
    """
    replays, results = {}, {}
    try:
        for side in SIDES:
            replays[side], results[side] = _recorded(work, side, enabled)
        found: dict[str, Any] = speed(lambda side: replays[side](), repeats, device)
    except Exception as error:  # whatever a model or a kernel does
        return {"why": f"{type(error).__name__}: {told(error, 200)}"}, {}
    return found, results


def _recorded(
    work: Callable[[str], Any], side: str, enabled: Callable[[], AbstractContextManager[Any]]
) -> tuple[Callable[[], None], Any]:
    def run() -> Any:
        if side == "without":
            return work(side)
        with enabled():
            return work(side)

    with GPU.another_stream():
        for _ in range(WARM_CALLS):
            run()
    GPU.wait()
    return GPU.recorded(run)
