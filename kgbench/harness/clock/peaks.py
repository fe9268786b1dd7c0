"""Measured peaks of a device: its roofline, and the basis of ``physical_bound.py``.

Memory is copied, read and written and matrices are multiplied with the library that torch has, on far more data than a
cache holds. Measured peaks lie a little below a data sheet's. A kernel may exceed them by some percent; one that
exceeds them by far did not do the work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch

from kgbench.core.kinds import DeviceKind
from kgbench.harness.wire.device import GPU

REPEATS: Final = 8
"""Runs of each measurement, of which the shortest counts."""
COPY_BYTES: Final = {"cuda": 2 << 30, "cpu": 64 << 20}
"""Bytes that a copy reads and writes together, per kind of device: far more than a cache holds."""
ORDER: Final = {"cuda": 4096, "cpu": 384}
"""Rows and columns of the matrices that are multiplied, per kind of device."""
DTYPES: Final = {"cuda": ("float32", "float64", "float16", "bfloat16", "complex64"), "cpu": ("float32", "float64")}
"""Dtypes of the matrices that are multiplied, per kind of device."""

LAUNCHES: Final = 200
"""Minimal kernels that are queued to see how long one takes, and as many again; a channel of CUDA holds a thousand."""
PAUSE_CYCLES: Final = 20_000_000
"""Clock cycles of a pause in which so many are queued: some 10 ms."""


def peaks(device: torch.device) -> dict[str, Any]:
    """``gb_per_s`` of a copy, read and written bytes both counted, and ``gflop_per_s`` by dtype of a matrix product,
    a complex product and sum counted as 8 operations.

    On CUDA also of reading and of writing alone, the size of the second-level cache, and ``empty_launch_us``, the time
    from one minimal kernel to the next in a queue, in µs.
    """
    kind = device.type
    source = torch.zeros(COPY_BYTES[kind] // 2, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    found: dict[str, Any] = {"gb_per_s": _rate(COPY_BYTES[kind], partial(target.copy_, source), device)}
    if kind == DeviceKind.CUDA:
        numbers = source.view(torch.float32)
        reading = (partial(torch.dot, numbers, numbers), partial(torch.sum, numbers), partial(torch.amax, numbers))
        found["read_gb_per_s"] = max(_rate(source.numel(), each, device) for each in reading)
        found["write_gb_per_s"] = _rate(source.numel(), partial(target.view(torch.float32).fill_, 1.0), device)
        found["l2_bytes"] = GPU.l2_bytes(device)
        found["empty_launch_us"] = round(_empty_launch_us(device), 3)
        del numbers, reading
    del source, target
    order = ORDER[kind]
    products = {}
    for name in DTYPES[kind]:
        factor = torch.ones((order, order), dtype=getattr(torch, name), device=device)
        work = (8 if factor.is_complex() else 2) * order**3
        products[name] = _rate(work, partial(torch.matmul, factor, factor), device)
    if kind == DeviceKind.CUDA:
        GPU.release_cached()
    return {**found, "gflop_per_s": products}


def _empty_launch_us(device: torch.device) -> float:
    """Queued behind a pause, so that the device never waits for the host."""
    few, many = (_least_s(partial(_launch, count), device, PAUSE_CYCLES) for count in (LAUNCHES, 2 * LAUNCHES))
    return 1e6 * (many - few) / LAUNCHES


def _launch(count: int) -> None:
    """Queue kernels that read and write nothing."""
    for _ in range(count):
        GPU.idle(0)


def _rate(work: float, action: Callable[[], Any], device: torch.device) -> int:
    """In 10⁹ units a second."""
    return round(work / _least_s(action, device) / 1e9)


def _least_s(action: Callable[[], Any], device: torch.device, pause_cycles: int = 0) -> float:
    """The shortest of some runs, in seconds, after one that does not count."""
    action()
    return min(_seconds(action, device, pause_cycles) for _ in range(REPEATS))


def _seconds(action: Callable[[], Any], device: torch.device, pause_cycles: int = 0) -> float:
    """Of one run; on CUDA the device's alone, without its launch. ``pause_cycles``: clock cycles of a CUDA device
    behind which the run is queued."""
    if device.type != "cuda":
        begun = time.perf_counter()
        action()
        return time.perf_counter() - begun
    begin, end = GPU.events()
    GPU.wait(device)
    if pause_cycles:
        GPU.idle(pause_cycles)
    begin.record()
    action()
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end)) / 1e3
