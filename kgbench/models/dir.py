"""Your own kernels: a folder with ``<source>/<name>.py`` in it, or one file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kgbench.models import Candidate, ModelError, Provider, candidate_from_file
from kgbench.problem import Problem

SUMMARY: Final = "dir:PATH        your own kernels: a folder with <source>/<name>.py in it, or one .py file"


def provider(argument: str | None) -> Provider:
    """Raises ModelError when there is no such folder or file."""
    if argument is None:
        raise ModelError("--model dir: name the folder or file after a colon, for example --model dir:my_kernels")
    path = Path(argument).expanduser()
    if path.is_dir():
        return FolderProvider(f"dir:{argument}", path)
    if path.is_file():
        return FileProvider(f"dir:{argument}", path)
    raise ModelError(f"--model dir:{argument}: there is no folder or file {argument}")


@dataclass(frozen=True)
class FolderProvider:
    """One candidate per problem, from ``folder/<source>/<name>.py``."""

    model: str
    folder: Path
    samples: int = 1
    timed: bool = True

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        if any(self._path(each).exists() for each in ids):
            return ids
        found = sorted(self.folder.rglob("*.py"))[:3]
        there = f"; there is {', '.join(str(path.relative_to(self.folder)) for path in found)}" if found else ""
        raise ModelError(
            f"--model {self.model}: {self.folder} has a kernel for none of the {len(ids)} selected problems"
            f"{there}. A kernel for {ids[0]} belongs in {self._path(ids[0])}"
        )

    def candidates(self, problem: Problem) -> Iterable[Candidate]:
        return (candidate_from_file(problem.id, self.model, self._path(problem.id)),)

    def _path(self, problem_id: str) -> Path:
        return self.folder / f"{problem_id}.py"


@dataclass(frozen=True)
class FileProvider:
    """One file for one problem: the one its path names, or the only one that --problems selects."""

    model: str
    path: Path
    samples: int = 1
    timed: bool = True

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        named = f"{self.path.absolute().parent.name}/{self.path.stem}"
        if named in ids:
            return (named,)
        if chosen and len(ids) == 1:
            return ids
        raise ModelError(
            f"--model {self.model}: which problem is {self.path} for? Its path would name {named}, which is "
            f"not among the {len(ids)} selected ones. Name it <source>/<name>.py, or add --problems with one id"
        )

    def candidates(self, problem: Problem) -> Iterable[Candidate]:
        return (candidate_from_file(problem.id, self.model, self.path),)
