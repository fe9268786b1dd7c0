"""Your own kernels: a folder, laid out as kgbench, BackendBench or KernelGenBench have it, or one file."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from kgbench.core import syntax
from kgbench.core.details.absence import CodeProblem, NoCode
from kgbench.core.errors import UsageError
from kgbench.core.outcomes import Outcome
from kgbench.models.layouts import Matches, match_folder, problem_named_by
from kgbench.models.provider import Candidate, ModelError, Provider, candidate_from_file
from kgbench.problem.model import Problem, module_of
from kgbench.problem.registry import Registry

FORM: Final = "dir:PATH"
SUMMARY: Final = "your own kernels: a folder with <source>/<name>.py in it, or one .py file"


def provider(argument: str | None, alias: str | None = None) -> Provider:
    """Raises ModelError when there is no such folder or file."""
    if argument is None:
        raise ModelError(
            "KGB504", "--model dir: name the folder or file after a colon, for example --model dir:my_kernels"
        )
    path = Path(argument).expanduser()
    if path.is_dir():
        return FolderProvider(alias or f"dir:{argument}", path)
    if path.is_file():
        return FileProvider(alias or f"dir:{argument}", path)
    raise ModelError("KGB505", f"--model dir:{argument}: there is no folder or file {argument}")


@dataclass
class FolderProvider:
    """As many candidates per problem as the folder has files for it."""

    model: str
    folder: Path
    timed: bool = True
    talks: bool = True
    """Say which files were matched."""
    _matches: Matches | None = field(default=None, init=False)

    @property
    def notes(self) -> Sequence[str]:
        return self._matches.lines(self.folder) if self._matches and self.talks else ()

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        self._matches = match_folder(self.folder, ids, Registry().ids())
        if self._matches.files:
            return ids
        words = "\n".join(self._matches.lines(self.folder)[1:])
        raise ModelError(
            "KGB506",
            f"--model {self.model}: {self.folder} has a kernel for none of the {len(ids)} selected problems. "
            f"A kernel for {ids[0]} belongs in {self._path(ids[0])}" + (f"\n{words}" if words else ""),
        )

    def samples_of(self, problem_id: str) -> int:
        return max(1, len(self._files(problem_id)))

    def candidates(self, problem: Problem) -> Iterable[Candidate]:
        for sample, path in enumerate(self._files(problem.id) or (self._path(problem.id),)):
            yield _candidate(problem, self.model, path, sample)

    def _files(self, problem_id: str) -> Sequence[Path]:
        matches = self._matches or match_folder(self.folder, [problem_id], Registry().ids())
        return matches.files.get(problem_id, ())

    def _path(self, problem_id: str) -> Path:
        return self.folder / f"{problem_id}.py"


@dataclass(frozen=True)
class FileProvider:
    """One file for one problem: the one its path names, or the only one that --problems selects."""

    model: str
    path: Path
    timed: bool = True
    notes: Sequence[str] = ()

    def narrow(self, ids: Sequence[str], *, chosen: bool) -> Sequence[str]:
        if chosen and len(ids) == 1:
            return ids
        try:
            return (problem_named_by(self.path.absolute(), ids).id,)
        except UsageError as error:
            raise ModelError(
                "KGB507",
                f"--model {self.model}: which problem is {self.path} for? Of the {len(ids)} selected ones its path "
                f"names none: {error}. Name it <source>/<name>.py, or add --problems with one id",
            ) from error

    def samples_of(self, problem_id: str) -> int:
        return 1

    def candidates(self, problem: Problem) -> Iterable[Candidate]:
        return (_candidate(problem, self.model, self.path, 0),)


def _candidate(problem: Problem, model: str, path: Path, sample: int) -> Candidate:
    candidate = replace(candidate_from_file(problem.id, model, path), sample=sample)
    is_module = module_of(problem) is not None
    if candidate.source_text is None or is_module or not _is_kernelbench(candidate.source_text, problem.name):
        return candidate
    words = (
        "KernelBench's ModelNew: the file defines a class for a module of PyTorch and no function for "
        f"{problem.id}; write the function that `kgbench show {problem.id}` names, or judge it with --suite "
        "kernelbench:PATH"
    )
    return replace(candidate, source_text=None, outcome=Outcome.NO_CODE, detail=NoCode(CodeProblem.NO_FUNCTION, words))


def _is_kernelbench(text: str, name: str) -> bool:
    """It defines the class ``ModelNew`` and no function that could be the problem's entry."""
    if "ModelNew" not in text:
        return False
    try:
        body = syntax.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    classes = {node.name for node in body if isinstance(node, ast.ClassDef)}
    functions = [node.name for node in body if isinstance(node, ast.FunctionDef)]
    return "ModelNew" in classes and not any(each == name or each.startswith(f"{name}_") for each in functions)
