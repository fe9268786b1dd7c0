"""Which libraries a candidate's processes have mapped and which of them ran, read from outside."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from kgbench.harness.attribution import text_pages
from kgbench.harness.machine import processes
from kgbench.policy.tables import LIBRARIES, LIBRARY_MARKS


def mapped(supervisor: int) -> frozenset[str]:
    """File names of the shared libraries that a supervisor's processes have in their memory, read from outside."""
    found = set()
    for pid in processes.descendants(supervisor):
        with contextlib.suppress(OSError):
            names = (line.rpartition("/")[2] for line in processes.lines_of(f"/proc/{pid}/maps") if "/" in line)
            found |= {name for name in names if re.search(r".\.so", name)}
    return frozenset(found)


def in_use(supervisor: int, known: frozenset[str]) -> frozenset[str]:
    """Paths of libraries whose code has run, recognised by name or, for files not in ``known``, by their content."""

    def is_one(pid: int, path: str) -> bool:
        if LIBRARIES.search(Path(path).name):
            return text_pages.touched(pid, path)
        if path in known or not text_pages.touched(pid, path):
            return False
        return text_pages.holds(pid, path, LIBRARY_MARKS)

    pids = processes.descendants(supervisor)
    return frozenset(path for pid in pids for path in text_pages.programs(pid) if is_one(pid, path))
