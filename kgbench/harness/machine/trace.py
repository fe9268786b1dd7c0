"""Records what a process does as spans of time, where a run was asked for a timeline (``kgbench run --trace FILE``).

Spans are written to a file of the process's own, one JSON list per line: name, begin in ns, duration in ns, ns of it in
which the process was stopped or waited, track, arguments. ``session/timeline.py`` makes one file of all. Times are of
CLOCK_MONOTONIC, which all processes of a machine share.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TextIO

SUFFIX: Final = ".spans"
"""End of the name of a process's file."""
BUFFER_BYTES: Final = 1 << 18
"""Bytes that are kept before they are written, so that recording a span costs no system call."""
FLUSH_NS: Final = 1_000_000_000
"""Nanoseconds after which they are written all the same: a run that is interrupted shows what it was doing."""


class Recorder:
    """Writes the spans of this process."""

    def __init__(self, folder: Path, process: str, waited_ns: Callable[[], int]) -> None:
        self.waited_ns = waited_ns
        """Nanoseconds in which this process was stopped or waited so far."""
        path = folder / f"{os.getpid()}{SUFFIX}"
        self._file: TextIO = path.open("w", encoding="utf-8", buffering=BUFFER_BYTES)
        self._file.write(json.dumps({"pid": os.getpid(), "process": process}) + "\n")
        self._written_ns = time.monotonic_ns()

    def add(self, name: str, begun_ns: int, ended_ns: int, waited_ns: int, track: str, args: dict[str, Any]) -> None:
        line = [name, begun_ns, ended_ns - begun_ns, waited_ns, track, args]
        self._file.write(json.dumps(line) + "\n")
        if ended_ns - self._written_ns > FLUSH_NS:
            self._file.flush()
            self._written_ns = ended_ns

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        self._file.close()


_recorder: Recorder | None = None
"""The recorder of this process; None where no timeline was asked for."""


def start(folder: Path, process: str, waited_ns: Callable[[], int] = lambda: 0) -> None:
    """Record from now on. ``process`` names this process in the timeline."""
    global _recorder
    _recorder = Recorder(folder, process, waited_ns)


def stop() -> None:
    """Write what is left, and record no more."""
    global _recorder
    if _recorder is not None:
        _recorder.close()
        _recorder = None


def flush() -> None:
    """Write what was recorded so far: it survives the process from now on."""
    if _recorder is not None:
        _recorder.flush()


@contextmanager
def span(name: str, track: str = "", **args: Any) -> Iterator[None]:
    """Record the block, or a function's call where this decorates it, as a span. About 1 µs where nothing records.

    Args:
        name: what happens, in the words of docs/runs.md.
        track: the line of the process's timeline; empty is its own, else that of a worker.
        args: shown beside the span; JSON-ready.
    """
    recorder = _recorder
    if recorder is None:
        yield
        return
    begun_ns, waited_ns = time.monotonic_ns(), recorder.waited_ns()
    try:
        yield
    finally:
        recorder.add(name, begun_ns, time.monotonic_ns(), recorder.waited_ns() - waited_ns, track, args)


def record(name: str, begun_ns: int, ended_ns: int, track: str = "", **args: Any) -> None:
    """Enter a span that has ended, by two times of ``time.monotonic_ns``: for what is itself timed."""
    if _recorder is not None:
        _recorder.add(name, begun_ns, ended_ns, 0, track, args)
