"""The problem set of a run: version, number of problems, hash. Scores compare only within one problem set.

Every printed table names its problem set in the form given here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ProblemSet:
    """Identifies the problems of a run."""

    version: str
    """Version of kgbench, with which the problems are released."""
    problems: int
    """Number of problems."""
    sha256: str
    """Hash over the ids and files of these problems. A subset of the problems has another hash."""

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> ProblemSet:
        """The problem set of a run; ``info`` is run.json."""
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
    """SHA-256 over (id, SHA-256 of the file) of all problems, in hexadecimal digits. Their order does not matter."""
    lines = sorted(f"{problem} {sha256}\n" for problem, sha256 in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()
