"""Functions that tests name in a problem file or in settings: referees and library workers import them by path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgbench.core.details.where import Purpose, Where
from kgbench.harness.wire.requests import Probe


def finds_it_sick(start: Callable[[], Any], device: Any) -> str:
    """A device probe that says what a worker on the device computed, and that it is wrong."""
    worker = start()
    try:
        found = worker.handle.request(Probe(), 30.0, Where(Purpose.DEVICE))["sum"]
        return f"it says 2 + 2 = {found * 0 + 5}"
    finally:
        worker.close()


def sum_in_float32(self: Any) -> Any:
    """Most rows of large numbers overflow on their way to a sum that float32 has."""
    return self.sum(1)


def sum_in_float64(self: Any) -> Any:
    return self.double().sum(1).float()


def exact_sum(self: Any) -> Any:
    return self.double().sum(1)
