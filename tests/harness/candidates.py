"""Reads the kernels under tests/candidates: a comment at each names the outcome it must get."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kgbench.core.outcomes import Outcome

CANDIDATES: Final = Path(__file__).parents[1] / "candidates"
USUAL: Final = "wrong value"
"""The outcome of a wrong kernel that names none."""
_HEADER: Final = re.compile(r"^# (\w+): (.*)$")


@dataclass(frozen=True)
class KnownCandidate:
    """A kernel whose outcome is known."""

    id: str
    """Path below tests/candidates without its suffix; ``/<what>`` at its end for one of several in a file."""
    text: str
    """What the harness gets."""
    problem_id: str
    outcomes: tuple[Outcome, ...]
    device: str
    """``any``, ``cpu`` or ``cuda``."""
    breaks: str = ""
    right_somewhere: bool = True
    """Some case passes before the one that shows what is wrong."""


@functools.cache
def mutants() -> list[KnownCandidate]:
    """Wrong kernels, ``mutants/<source>/<name>.py``."""
    return [known for path in kernel_files("mutants") for known in KernelFile(path).candidates()]


@functools.cache
def wrong() -> list[KnownCandidate]:
    """Kernels with one mistake that happens in practice, ``wrong/<source>/<name>.py``."""
    return [known for path in kernel_files("wrong") for known in KernelFile(path).candidates()]


def adversaries() -> list[KnownCandidate]:
    """Misbehaving kernels, ``adversaries/<what>.py``; the header names the problem."""
    return [_alone(path) for path in sorted((CANDIDATES / "adversaries").glob("*.py"))]


def honest() -> list[KnownCandidate]:
    """Right kernels that look odd, ``honest/<what>.py``; the header names the problem."""
    return [_alone(path) for path in sorted((CANDIDATES / "honest").glob("*.py"))]


def kernel_files(folder: str) -> list[Path]:
    """The files of ``mutants`` or ``wrong``, each with all wrong kernels of one problem."""
    return sorted((CANDIDATES / folder).glob("*/*.py"))


@dataclass(frozen=True)
class Part:
    """A statement at the top of a file, with the comments right above it."""

    header: dict[str, str]
    names: frozenset[str]
    """What it defines or imports."""
    uses: frozenset[str]
    text: str


class KernelFile:
    """A file of wrong kernels; tests/candidates/README.md says how it is written."""

    def __init__(self, path: Path) -> None:
        self.problem_id = "/".join(path.with_suffix("").parts[-2:])
        self.folder, self.name = path.parts[-3], path.stem
        lines = path.read_text().splitlines()
        self.parts = [_part(node, lines) for node in ast.parse("\n".join(lines)).body]
        self.headers = {_stem(part): part.header for part in self.parts if "breaks" in part.header}
        """Of the kernels, by name."""
        shared = any("kernel" in part.uses for part in self.parts)
        self.entries = {name for part in self.parts for name in part.names if shared and self._is_entry(name)}
        """Entries that the kernels share: they call ``kernel``."""

    def candidates(self) -> Iterator[KnownCandidate]:
        for what, header in self.headers.items():
            yield _known(f"{self.folder}/{self.problem_id}/{what}", self.text(what), self.problem_id, header)

    def text(self, what: str) -> str:
        """One kernel as a candidate: its functions, what they use of the file, and the names that are called."""
        bound = self.bound(what)
        parts = [part.text for part in self.used_by({*bound.values(), *self.entries})]
        return "\n\n\n".join([*parts, "\n".join(f"{name} = {function}" for name, function in bound.items()) + "\n"])

    def bound(self, what: str) -> dict[str, str]:
        """A kernel's functions by the names that they get in its candidate."""
        if self.entries:
            return {"kernel": what}
        own = [name for part in self.parts for name in part.names if name.partition("__")[0] == what]
        return {self.name + name.removeprefix(what).replace("__", "_", 1): name for name in own}

    def used_by(self, names: set[str]) -> list[Part]:
        """The parts that define these names, and all that they use."""
        while more := {name for part in self.parts if names & part.names for name in part.uses | part.names} - names:
            names = names | more
        return [part for part in self.parts if names & part.names]

    def _is_entry(self, name: str) -> bool:
        return f"{name}_".startswith(f"{self.name}_") and name.partition("__")[0] not in self.headers


def _part(node: ast.stmt, lines: list[str]) -> Part:
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))]) - 1
    header, above = {}, first
    while above and (match := _HEADER.match(lines[above - 1])):
        header[match[1]], above = match[2].strip(), above - 1
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        names = {each.asname or each.name.partition(".")[0] for each in node.names}
    elif isinstance(node, ast.FunctionDef):
        names = {node.name}
    else:
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    uses = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return Part(header, frozenset(names), frozenset(uses), "\n".join(lines[first : node.end_lineno]))


def _stem(part: Part) -> str:
    """A kernel's name: its functions' names up to the overload's."""
    return next(iter(part.names)).partition("__")[0]


def _alone(path: Path) -> KnownCandidate:
    text, header = path.read_text(), {}
    for line in text.splitlines():
        if (match := _HEADER.match(line)) is None:
            break
        header[match[1]] = match[2].strip()
    return _known(str(path.relative_to(CANDIDATES).with_suffix("")), text, header["problem"], header)


def _known(id: str, text: str, problem_id: str, header: dict[str, str]) -> KnownCandidate:
    outcomes = tuple(Outcome(part.strip()) for part in header.get("outcome", USUAL).split("|"))
    right_somewhere = header.get("right") != "nothing"
    device, breaks = header.get("device", "any"), header.get("breaks", "")
    return KnownCandidate(id, text, problem_id, outcomes, device, breaks, right_somewhere)
