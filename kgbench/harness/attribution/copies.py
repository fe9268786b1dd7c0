"""Code in a candidate's own memory or files that is a library's: told by its bytes, which stand in the library.

Read from outside, by the referee. Machine code that was compiled for itself is not the same for 64 bytes on end. By its
bytes, too, code at the place of Python's or the system's is known to be theirs.
"""

from __future__ import annotations

import contextlib
import mmap
import os
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


def is_as_given(pid: int, address: int, path: str, begin: int) -> bool:
    """Whether a block of a process's code is what a file has ``begin`` bytes after its start, or what the referee has
    at that address, as a process that was forked from the same one.

    The file is the one that the referee sees: a worker's folders in memory can have other files of the same path.
    """
    code = _memory(pid, address)
    if code and code == _memory(os.getpid(), address):
        return True
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        return code != b"" and os.pread(file.fileno(), BLOCK, begin) == code
    return False


def _read(pid: int, address: int) -> bytes:
    """A block of a process's memory; nothing of what is gone, or holds no code."""
    code = _memory(pid, address)
    return code if len(code) == BLOCK and len(set(code)) > BLOCK // 8 else b""


def _memory(pid: int, address: int) -> bytes:
    with contextlib.suppress(OSError, ValueError), open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(BLOCK)
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
