"""A clock that the candidate could change."""

from __future__ import annotations

import time

from kgbench.harness.wire.device import GPU


class OwnClock:
    """A timer as in other benchmarks: in the candidate's process, looked up by name when it is needed."""

    def __init__(self, device_kind: str) -> None:
        self.cuda = device_kind == "cuda"
        if self.cuda:
            self.begin, self.end = GPU.events()
            self.begin.record()
        self.begun = time.perf_counter()

    def stop_us(self) -> float:
        if not self.cuda:
            return (time.perf_counter() - self.begun) * 1e6
        self.end.record()
        self.end.synchronize()
        return float(self.begin.elapsed_time(self.end)) * 1e3
