"""Reads the kernels under tests/candidates: each names in its header the outcome it must get."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kgbench.core.types import Outcome

CANDIDATES: Final = Path(__file__).parents[1] / "candidates"
_HEADER: Final = re.compile(r"^# (\w+): (.*)$")


@dataclass(frozen=True)
class KnownCandidate:
    """A kernel whose outcome is known."""

    path: Path
    problem_id: str
    outcomes: tuple[Outcome, ...]
    device: str
    """``any``, ``cpu`` or ``cuda``."""
    breaks: str = ""
    right_somewhere: bool = True
    """Some case passes before the one that shows what is wrong."""

    @property
    def id(self) -> str:
        return str(self.path.relative_to(CANDIDATES).with_suffix(""))


def mutants() -> list[KnownCandidate]:
    """Wrong kernels, ``mutants/<source>/<name>/<what>.py``."""
    return [_read(path, "/".join(path.parts[-3:-1])) for path in sorted((CANDIDATES / "mutants").glob("*/*/*.py"))]


def wrong() -> list[KnownCandidate]:
    """Kernels with one mistake that happens in practice, ``wrong/<source>/<name>__<what>.py``."""
    paths = sorted((CANDIDATES / "wrong").glob("*/*.py"))
    return [_read(path, f"{path.parent.name}/{path.stem.rpartition('__')[0]}") for path in paths]


def adversaries() -> list[KnownCandidate]:
    """Misbehaving kernels, ``adversaries/<what>.py``; the header names the problem."""
    return [_read(path, "") for path in sorted((CANDIDATES / "adversaries").glob("*.py"))]


def honest() -> list[KnownCandidate]:
    """Right kernels that look odd, ``honest/<what>.py``; the header names the problem."""
    return [_read(path, "") for path in sorted((CANDIDATES / "honest").glob("*.py"))]


def _read(path: Path, problem_id: str) -> KnownCandidate:
    header = {}
    for line in path.read_text().splitlines():
        match = _HEADER.match(line)
        if match is None:
            break
        header[match[1]] = match[2].strip()
    outcomes = tuple(Outcome(part.strip()) for part in header["outcome"].split("|"))
    return KnownCandidate(
        path,
        header.get("problem", problem_id),
        outcomes,
        header.get("device", "any"),
        header.get("breaks", ""),
        header.get("right") != "nothing",
    )
