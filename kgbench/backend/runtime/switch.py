"""All kernels of the package, in use or not."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch

from .aten import AtenOperator
from .caller import Caller, Watcher
from .cublas import CublasRoutine
from .table import read_table
from .vllm import VllmOperator


class Switch:
    """Puts the kernels in place of ATen's and vLLM's and takes them away again, for all threads of the process."""

    def __init__(self) -> None:
        self.table = read_table()
        device = self.table.device
        by_source: dict[str, list[Any]] = {"aten": [], "vllm": [], "cublas": []}
        for each in self.table.operators:
            by_source[each.source].append(each)
        self.aten = [AtenOperator(each, device) for each in by_source["aten"]]
        self.vllm = [VllmOperator(each, device) for each in by_source["vllm"]]
        self.cublas = {each.name: CublasRoutine(each, device) for each in by_source["cublas"]}
        self.absent: list[str] = []
        """Why kernels were not put in place the last time."""
        self._lock = threading.Lock()
        self._depth = 0
        self._library: Any = None

    @property
    def callers(self) -> list[Caller]:
        found = [each.caller for each in self.aten] + [each.caller for each in self.vllm]
        return found + [each.caller for each in self.cublas.values()]

    @contextlib.contextmanager
    def enabled(self) -> Iterator[None]:
        """May be nested. Raises RuntimeError where a kernel cannot be imported."""
        self._enter()
        try:
            yield
        finally:
            self._leave()

    def watch(self, watcher: Watcher | None) -> None:
        """Tells the watcher of every call that is left to the library."""
        for each in self.callers:
            each.watcher = watcher

    def _enter(self) -> None:
        with self._lock:
            if self._depth == 0:
                self.table.device.check_interpreter()
                self._library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
                try:
                    reasons = [each.register(self._library) for each in self.aten]
                    self.absent = [why for why in (*reasons, *(each.register() for each in self.vllm)) if why]
                except BaseException:
                    self._take_away()
                    raise
            self._depth += 1

    def _leave(self) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._take_away()

    def _take_away(self) -> None:
        for each in self.vllm:
            each.unregister()
        self._library._destroy()
        self._library = None
