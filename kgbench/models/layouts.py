"""Which file of a folder answers which problem, in the layouts of kgbench, BackendBench and KernelGenBench.

A file's name, without what numbers it as one of several samples, is a spelling of a problem's id;
``docs/coming-from.md`` lists what is understood. No file is opened here; what is in it is judged later.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kgbench.core.errors import UsageError
from kgbench.core.names import Name, resolve
from kgbench.problem.kernelbench import named
from kgbench.problem.model import SOURCES

NUMBERED_FILE: Final = re.compile(r"(?P<name>.+?)(?:_implementation_v?|_attempt_|_sample_|\.)(?P<number>\d+)")
"""``add_implementation_1``, ``add__Tensor_implementation_v1``, ``add_attempt_1``, ``add_sample_1``, ``add.1``."""
NUMBERED_FOLDER: Final = re.compile(r"(?:round|sample|attempt|run)_(?P<number>\d+)")
"""A folder that holds one sample of many problems, such as KernelGenBench's ``round_1``."""
KERNELBENCH_FILE: Final = re.compile(r"(?P<name>level_\d+_problem_\d+)_sample_(?P<number>\d+)_kernel")
UNMATCHED_SHOWN: Final = 20
"""Most files of a folder that are named because no problem was found for them."""

_Numbers = tuple[int, int]
"""(of the folder, of the file), -1 where there is none: the order of a problem's samples."""


@dataclass(frozen=True)
class Matches:
    """The files of a folder by problem, and why the others are for none."""

    files: Mapping[str, tuple[Path, ...]]
    """Per id its samples in order."""
    unmatched: Mapping[Path, str]
    not_selected: int = 0
    """Files for problems of the benchmark that this run does not ask for."""

    def lines(self, folder: Path) -> tuple[str, ...]:
        """What is said about them before a run."""
        count = sum(map(len, self.files.values()))
        most = max(map(len, self.files.values()), default=0)
        samples = f", up to {most} samples each" if most > 1 else ""
        lines = [f"matched {_counted(count, 'file')} to {_counted(len(self.files), 'problem')}{samples}"]
        if self.not_selected:
            lines.append(f"  not selected: {_counted(self.not_selected, 'file')} for other problems")
        shown = list(self.unmatched.items())[:UNMATCHED_SHOWN]
        lines += [f"  {path.relative_to(folder)}: {why}" for path, why in shown]
        if (more := len(self.unmatched) - UNMATCHED_SHOWN) > 0:
            lines.append(f"  and {_counted(more, 'file')} more")
        return tuple(lines)


def match_folder(folder: Path, ids: Sequence[str], known: Sequence[str] = ()) -> Matches:
    """Matches every ``*.py`` below ``folder`` with the selected ``ids``; ``known`` are others that it may name."""
    taken: dict[str, dict[_Numbers, Path]] = {}
    unmatched: dict[Path, str] = {}
    not_selected = 0
    every = tuple(dict.fromkeys((*ids, *known)))
    selected = frozenset(ids)
    for path in _python_files(folder):
        relative = path.relative_to(folder)
        try:
            name = problem_named_by(relative, every)
        except UsageError as error:
            unmatched[path] = str(error)
            continue
        if name.id not in selected:
            not_selected += 1
            continue
        samples = taken.setdefault(name.id, {})
        first = samples.setdefault(_numbers(relative), path)
        if first is not path:
            unmatched[path] = _second_file(name, first.relative_to(folder))
    in_order = {each: tuple(path for _, path in sorted(samples.items())) for each, samples in taken.items()}
    return Matches(in_order, unmatched, not_selected)


def problem_named_by(path: Path, ids: Sequence[str]) -> Name:
    """The problem among ``ids`` that a file's path names. UsageError in words when it is none or several."""
    if sample := KERNELBENCH_FILE.fullmatch(path.stem):
        if found := named(sample["name"], ids):
            return Name(found)
        raise UsageError(
            "KGB509", "a KernelBench sample of a problem that is not here: --suite kernelbench:PATH has its problems"
        )
    refusals: list[UsageError] = []
    sources = {*SOURCES, *(each.partition("/")[0] for each in ids)}
    for spelling in _spellings(path, sources):
        try:
            return resolve(spelling, ids)
        except UsageError as error:
            refusals.append(error)
    raise refusals[0]


def _spellings(path: Path, sources: Collection[str]) -> Iterator[str]:
    """``[<source>/]<name>`` as the path has it, then with what follows the last ``__`` read as the overload."""
    numbered = NUMBERED_FILE.fullmatch(path.stem)
    stem = numbered["name"] if numbered else path.stem
    first, _, rest = stem.partition("__")
    if "::" not in stem and path.parent.name in sources:
        stem = f"{path.parent.name}/{stem}"
    elif first in sources and rest:
        stem = f"{first}/{rest}"
    yield stem
    base, _, overload = stem.rpartition("__")
    if base and overload:
        yield f"{base}.{overload}"


def _numbers(path: Path) -> _Numbers:
    folders = [match for part in path.parts[:-1] if (match := NUMBERED_FOLDER.fullmatch(part))]
    file = KERNELBENCH_FILE.fullmatch(path.stem) or NUMBERED_FILE.fullmatch(path.stem)
    return int(folders[-1]["number"]) if folders else -1, int(file["number"]) if file else -1


def _python_files(folder: Path) -> list[Path]:
    """Sorted; what Python itself or an editor puts there is no candidate."""
    found = (path for path in folder.rglob("*.py") if path.is_file() and path.name != "__init__.py")
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))


def _second_file(name: Name, first: Path) -> str:
    if name.overload:
        return f"{name.id} is answered by {first}; put the functions of all its overloads into one file"
    return f"{name.id} is answered by {first}; number the files of several samples, {name.id}.0.py, {name.id}.1.py"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
