"""Which problems a number is about: the set's version and hash, without which no two numbers can be compared.

Whatever prints a table says it, and says it in these words.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ProblemSet:
    version: str
    """kgbench's, with which the problems are released."""
    problems: int
    sha256: str
    """Over ids and files of the problems, so that it differs for a part of them."""

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> ProblemSet:
        """What a run was asked for; ``info`` is run.json."""
        version, sha256 = (str(info.get(key) or "unknown") for key in ("kgbench", "problem_set_sha256"))
        return cls(version, len(info.get("problems", ())), sha256)

    @property
    def words(self) -> str:
        """``version 0.1.0, 210 problems, sha256 …``"""
        problems = f"{self.problems} problem{'' if self.problems == 1 else 's'}"
        return f"version {self.version}, {problems}, sha256 {self.sha256}"

    def __str__(self) -> str:
        return f"problem set: {self.words}"


def sha256_of(files: Iterable[tuple[str, str | None]]) -> str:
    """One hash over (id, hash of its file) of all problems, whatever their order."""
    lines = sorted(f"{problem} {sha256}\n" for problem, sha256 in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
