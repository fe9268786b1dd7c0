"""Code in a candidate's own memory or files that is a library's: told by its bytes, which stand in the library.

Read from outside, by the referee. Machine code that was compiled for itself is not the same for 64 bytes on end.
"""

from __future__ import annotations

import contextlib
import mmap
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

BLOCK: Final = 64
"""Bytes of code that are looked for."""
BLOCKS: Final = 3
"""Blocks that are looked for: those in which a processor was found most often."""
OF_DEVICES: Final = re.compile(r"cuda|/libcu|/libnv|nccl")
"""How paths of libraries look that are large and do nothing on a CPU."""
LEAST_FOUND: Final = 2
"""Blocks of one library's after which the code is a copy of it; all, where there are fewer."""


def library_of(spots: Mapping[tuple[int, int], int], files: Iterable[tuple[int, str]]) -> str:
    """The library whose code ran at these places; empty where it is none's.

    Args:
        spots: how often which process was found at which address.
        files: libraries' files, each with a process that sees it by this path.
    """
    blocks: Counter[tuple[int, int]] = Counter()
    for (pid, address), count in spots.items():
        blocks[pid, address // BLOCK * BLOCK] += count
    codes = [code for (pid, at), _ in blocks.most_common(BLOCKS) if (code := _read(pid, at))]
    for pid, path in files:
        if codes and not OF_DEVICES.search(path) and _holds(pid, path, codes) >= min(LEAST_FOUND, len(codes)):
            return path
    return ""


def _read(pid: int, address: int) -> bytes:
    """A block of a process's memory; nothing of what is gone, or holds no code."""
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        code = memory.read(BLOCK)
        return code if len(code) == BLOCK and len(set(code)) > BLOCK // 8 else b""
    return b""


def _holds(pid: int, path: str, codes: Iterable[bytes]) -> int:
    """How many of these stand in a file."""
    with contextlib.suppress(OSError, ValueError), Path(f"/proc/{pid}/root{path}").open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        found = missed = 0
        for code in codes:
            if data.find(code) >= 0:
                found += 1
            elif (missed := missed + 1) > BLOCKS - LEAST_FOUND:
                break
        return found
    return 0
