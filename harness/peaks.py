"""What a device reaches at most, measured once when its first referee starts: the roof of the roofline.

Memory is copied and matrices are multiplied with the library that torch has. These are measured peaks, a little below
a data sheet's; a kernel may pass them by some percent, and one that passes them by far does not do the work.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch

REPEATS: Final = 5
COPY_BYTES: Final = {"cuda": 1 << 30, "cpu": 64 << 20}
ORDER: Final = {"cuda": 4096, "cpu": 384}
DTYPES: Final = {"cuda": ("float32", "float64", "float16", "bfloat16"), "cpu": ("float32", "float64")}


def peaks(device: torch.device) -> dict[str, Any]:
    """``gb_per_s`` of a copy, read and written bytes both counted, and ``gflop_per_s`` by dtype of a matrix product."""
    kind = device.type
    source = torch.zeros(COPY_BYTES[kind] // 2, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    copy_s = _least_s(partial(target.copy_, source), device)
    del source, target
    order = ORDER[kind]
    products = {}
    for name in DTYPES[kind]:
        factor = torch.ones((order, order), dtype=getattr(torch, name), device=device)
        products[name] = round(2 * order**3 / _least_s(partial(torch.matmul, factor, factor), device) / 1e9)
    if kind == "cuda":
        torch.cuda.empty_cache()
    return {"gb_per_s": round(COPY_BYTES[kind] / copy_s / 1e9), "gflop_per_s": products}


def _least_s(action: Callable[[], Any], device: torch.device) -> float:
    """The shortest of some runs, in seconds, after one that does not count."""
    action()
    least = math.inf
    for _ in range(REPEATS):
        _finish(device)
        begun = time.perf_counter()
        action()
        _finish(device)
        least = min(least, time.perf_counter() - begun)
    return least


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
