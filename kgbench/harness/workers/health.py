"""Finds out whether a device still computes, after a candidate failed on it in a way that a broken one explains."""

from __future__ import annotations

from collections.abc import Callable

import torch

from kgbench.core.details.where import Purpose, Where
from kgbench.harness.wire.requests import Probe
from kgbench.harness.workers.handle import HarnessFailed, WorkerFailed
from kgbench.harness.workers.started import Worker

PROBE_S = 30.0
"""Seconds in which a worker must answer a probe of its device."""


def probe(start: Callable[[], Worker], device: torch.device) -> str:
    """What is wrong with the device; empty where it computes. Asks a fresh worker, since a fault stays in the context
    that had it.
    """
    try:
        worker = start()
    except HarnessFailed as error:
        return f"no worker can be started on it any more: {error}"
    try:
        reply = worker.handle.request(Probe(), PROBE_S, Where(Purpose.DEVICE))
    except WorkerFailed as failure:
        return f"a plain sum on it failed: {failure.reason}"
    finally:
        worker.close()
    wanted = sum(range(1024))
    return "" if reply.get("sum") == wanted else f"a plain sum on it gave {reply.get('sum')} instead of {wanted}"
