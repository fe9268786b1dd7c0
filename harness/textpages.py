"""Whose code ran in a process: the processor marks each page that it fetches, and the kernel tells others.

Read from outside, by the referee: nothing that runs in the process can take a mark back. Where the kernel is silent,
nothing is found.
"""

from __future__ import annotations

import contextlib
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ENTRY_BYTES: Final = 8
PRESENT: Final = 0x80
"""In the last byte of an entry of ``pagemap``."""
_MAPPING: Final = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S+x\S* .*/([^/\n]+)$")


def touched(pid: int, names: re.Pattern[str]) -> frozenset[str]:
    """File names of the libraries of these names of whose code anything was fetched since the process began. Cheap."""
    found = set()
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/pagemap").open("rb", buffering=0) as pages:
        for first, end, name in _mappings(pid, names):
            pages.seek(first // mmap.PAGESIZE * ENTRY_BYTES)
            entries = pages.read((end - first) // mmap.PAGESIZE * ENTRY_BYTES)
            if any(last & PRESENT for last in entries[ENTRY_BYTES - 1 :: ENTRY_BYTES]):
                found.add(name)
    return frozenset(found)


def forget(pid: int) -> None:
    """Take all marks back."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("1")


def ran(pid: int, names: re.Pattern[str]) -> frozenset[str]:
    """The libraries of these names of whose code anything was fetched since ``forget``. Takes milliseconds."""
    found, name = set(), ""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps").read_text(errors="replace").splitlines():
            if mapping := _MAPPING.match(line):
                name = mapping[3]
            elif not line[0].isupper():
                name = ""
            elif name and line.startswith("Referenced:") and line.split()[1] != "0" and names.search(name):
                found.add(name)
    return frozenset(found)


def _mappings(pid: int, names: re.Pattern[str]) -> Iterator[tuple[int, int, str]]:
    """First and last address, and the file, of executable mappings."""
    for line in Path(f"/proc/{pid}/maps").read_text(errors="replace").splitlines():
        mapping = _MAPPING.match(line)
        if mapping is not None and names.search(mapping[3]):
            yield int(mapping[1], 16), int(mapping[2], 16), mapping[3]
