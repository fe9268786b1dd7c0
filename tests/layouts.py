"""Folders of candidates as other benchmarks lay them out, from ``tests/candidates/layouts``.

A colon in a file's name keeps a repository from being checked out on Windows, so there it is written ``%3A``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final
from urllib.parse import unquote

LAYOUTS: Final = Path(__file__).parent / "candidates" / "layouts"


def layout(name: str, below: Path) -> Path:
    """A copy of one of them below ``below``, with its files' real names."""
    folder = below / name
    for path in (LAYOUTS / name).rglob("*.py"):
        copy = folder / unquote(str(path.relative_to(LAYOUTS / name)))
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    return folder
