"""Which code pages a process has executed, by the accessed bits in its page tables.

The referee reads them from outside. A process can clear its own bits (it gives its code's pages back to the kernel, or
writes to its own ``clear_refs``); it cannot take back samples of what it ran. Where the system hides the bits, nothing
is found.
"""

from __future__ import annotations

import contextlib
import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from kgbench.harness.machine import processes

ENTRY_BYTES: Final = 8
"""Bytes of a page's entry in ``pagemap``."""
PRESENT: Final = 0x80
"""Bit in the last byte of an entry of ``pagemap``: the page is in memory."""
_MAPPING: Final = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) \S+x\S* \S+ \S+ \S+\s+(/.*)$")


def programs(pid: int) -> frozenset[str]:
    """Paths of all files that the process has mapped as executable, as the process names them."""
    return frozenset(path for _, _, path in _mappings(pid))


def holds(pid: int, path: str, marks: re.Pattern[bytes]) -> bool:
    """Whether a file that a process has mapped has any of these bytes in it."""
    # The first is there for a file that is gone, too, and not for everybody.
    links = [f"map_files/{first:x}-{end:x}" for first, end, mapped in _mappings(pid) if mapped == path]
    for link in (*links[:1], f"root{path}"):
        with contextlib.suppress(OSError, ValueError), Path(f"/proc/{pid}/{link}").open("rb") as file:
            return marks.search(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) is not None
    return False


def touched(pid: int, path: str) -> bool:
    """Whether any page of a file's code was executed since the process began. Cheap."""
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/pagemap").open("rb", buffering=0) as pages:
        for first, end, mapped in _mappings(pid):
            if mapped == path:
                pages.seek(first // mmap.PAGESIZE * ENTRY_BYTES)
                entries = pages.read((end - first) // mmap.PAGESIZE * ENTRY_BYTES)
                if any(last & PRESENT for last in entries[ENTRY_BYTES - 1 :: ENTRY_BYTES]):
                    return True
    return False


def forget(pid: int) -> None:
    """Clear all accessed bits."""
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("1")


def ran(pid: int) -> frozenset[str]:
    """Paths of files whose code was executed since ``forget``. Takes milliseconds."""
    found, path = set(), ""
    with contextlib.suppress(OSError):
        for line in processes.lines_of(f"/proc/{pid}/smaps"):
            if not line[:1].isupper():
                mapping = _MAPPING.match(line)
                path = mapping[3] if mapping else ""
            elif path and line.startswith("Referenced:") and line.split()[1] != "0":
                found.add(path)
    return frozenset(found)


def _mappings(pid: int) -> Iterator[tuple[int, int, str]]:
    """First and last address, and the file, of executable mappings."""
    with contextlib.suppress(OSError):
        for line in processes.lines_of(f"/proc/{pid}/maps"):
            if mapping := _MAPPING.match(line):
                yield int(mapping[1], 16), int(mapping[2], 16), mapping[3]
