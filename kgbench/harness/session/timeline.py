"""Makes one timeline of what the processes of a run recorded, in Chrome's trace format, which Perfetto opens."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from kgbench.harness.machine.trace import SUFFIX


def write_timeline(folder: Path, file: Path) -> int:
    """Write the timeline of all span files in ``folder`` to ``file``, compressed where its name ends in ``.gz``.

    Returns the number of spans. The format is Chrome's JSON trace: complete events with ``ts`` and ``dur`` in µs.
    A last line that was cut off by the end of its process is left out. Raises OSError.
    """
    count = 0
    with _opened(file) as out:
        out.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
        separator = ""
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            for event in _events(path):
                out.write(separator + json.dumps(event))
                separator = ",\n"
                count += event["ph"] == "X"
        out.write("\n]}\n")
    return count


def _opened(file: Path) -> TextIO:
    if file.name.endswith(".gz"):
        return gzip.open(file, "wt", encoding="utf-8")
    return file.open("w", encoding="utf-8")


def _events(path: Path) -> Iterator[dict[str, Any]]:
    """The trace events of one process: its name, its tracks' names and its spans."""
    tracks: dict[str, int] = {}
    with path.open(encoding="utf-8") as lines:
        head = _parsed(next(lines, ""))
        if head is None:
            return
        pid = head["pid"]
        yield {"ph": "M", "name": "process_name", "pid": pid, "args": {"name": head["process"]}}
        for line in lines:
            parsed = _parsed(line)
            if parsed is None:
                return
            name, begun_ns, duration_ns, waited_ns, track, args = parsed
            if track not in tracks:
                tracks[track] = len(tracks) + 1
                title = track or head["process"]
                yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": tracks[track], "args": {"name": title}}
            if waited_ns:
                args["waited_us"] = waited_ns / 1e3
            times = {"ts": begun_ns / 1e3, "dur": duration_ns / 1e3}
            yield {"ph": "X", "name": name, "pid": pid, "tid": tracks[track], **times, "args": args}


def _parsed(line: str) -> Any:
    """The line's JSON; None where it was cut off."""
    try:
        return json.loads(line)
    except ValueError:
        return None
