"""Functions that tests name in a problem file or in settings: referees and library workers import them by path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kgbench.core.details.where import Purpose, Where
from kgbench.harness.wire.requests import Probe
from kgbench.harness.workers.handle import HarnessFailed


def referee_without_workers(coordinator_fd: int, server_fd: int, page_fd: int) -> None:
    """A referee's process in which no worker starts while a candidate is judged, as on a GPU that takes nobody."""
    from kgbench.harness.referee.process import serve
    from kgbench.harness.referee.referee import Referee

    class WithoutWorkers(Referee):
        def evaluate(self, *judged: Any) -> Any:
            raise HarnessFailed("worker did not start: the device is busy or unavailable")

    serve(coordinator_fd, server_fd, page_fd, WithoutWorkers)


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
