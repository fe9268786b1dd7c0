"""Whether everything that a problem file names exists, decided without importing it, torch or a library.

Undecided names are marked: ``Named.later`` if torch can decide (``torchtools/library_names.py``), ``Named.unseen`` if
nothing on this machine can.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kgbench.baselines import cblas_api, cublas_api
from kgbench.baselines.routines import ROUTINES, letters
from kgbench.baselines.vllm_operators import OPERATORS, operator_of
from kgbench.core import syntax
from kgbench.core.errors import ProblemFileError, ProblemFileErrors
from kgbench.core.names import did_you_mean
from kgbench.problem import blas, schemas
from kgbench.problem.format.file import key_line
from kgbench.problem.format.leaves import DOTTED
from kgbench.problem.model import Overload

NO_VLLM: Final = "vLLM is not installed here, so its own declaration was not read"
NO_HEADER: Final = "scipy-openblas32 is not installed here"


@dataclass(frozen=True)
class Named:
    """One thing that a problem file names, or that follows from its name."""

    key: str
    target: str
    wrong: str = ""
    """What does not exist, or does not fit the entry."""
    later: bool = False
    """Whether deciding needs torch, or an import of the module."""
    unseen: str = ""
    """Why a part of it could not be checked on this machine."""


def what_is_wrong(path: Path, found: Iterable[tuple[str, Named]]) -> ProblemFileError | ProblemFileErrors | None:
    """One error about all wrong names of a problem's file; ``found`` is by overload."""
    wrong: dict[tuple[int, str], ProblemFileError] = {}
    for overload, each in found:
        if each.wrong:
            line = key_line(path, overload, each.key)
            error = ProblemFileError("KGB247", path, line, each.key, f"'{each.target}': {each.wrong}")
            wrong.setdefault((line, each.key), error)
    errors = [wrong[place] for place in sorted(wrong)]
    return errors[0] if len(errors) == 1 else ProblemFileErrors(errors) if errors else None


def looked_up(overload: Overload, folders: Sequence[Path]) -> Iterator[Named]:
    """Everything that an overload names. ``folders``, those of the user's problems, precede installed packages."""
    for target in dict.fromkeys(overload.baseline.values()):
        owner, _, name = target.partition(":")
        if owner == "aten":
            yield Named("baseline", target, later=True)
        elif owner == "vllm":
            yield _vllm(target, name, overload)
        elif blas.is_routine(target):
            yield _routine(target, owner, name, overload)
        else:
            yield _function("baseline", target, tuple(folders))
    reference = overload.reference if DOTTED.match(overload.reference) else None
    paths = {
        "fallback": overload.fallback, "reference": reference, "prepare": overload.prepare,
        "canonical": overload.canonical,
    }  # fmt: skip
    yield from (_function(key, path, tuple(folders)) for key, path in paths.items() if path)


def _routine(target: str, owner: str, name: str, overload: Overload) -> Named:
    """A BLAS routine: its signature is compared with the header's declaration, the entry and, for OpenBLAS, cblas.h."""
    routine, own = blas.split(name)
    if not own and routine not in ROUTINES:
        known = did_you_mean(routine, (*ROUTINES, *cublas_api.known_routines()))
        step = f"add the key signature, or its row to baselines/routines.py; {known}"
        return Named("baseline", target, f"no signature of a routine '{routine}' is known; {step}")
    key = "signature" if own else "baseline"
    try:
        found = letters(name)
    except ValueError as error:
        return Named(key, target, str(error))
    if why := blas.entry_difference(found, overload.signature.parameters):
        return Named(key, target, f"entry does not fit the routine's '{found}': {why}")
    if owner == "openblas":
        wrong, unseen = cblas_api.why_not(routine, found), cblas_api.lacking(routine, found)
        return Named(key, target, wrong, unseen=NO_HEADER if cblas_api.header() is None else unseen)
    if cublas_api.declared(routine) is None:
        return Named(key, target, unseen=f"cuBLAS {cublas_api.VERSION} declares no {routine}; a newer one may")
    return Named(key, target)


def _vllm(target: str, name: str, overload: Overload) -> Named:
    """An operator of vLLM: its row or own schema is compared with the entry, and with an installed library."""
    _, own = blas.split(name)
    try:
        operator = operator_of(name)
    except ValueError as error:
        near = did_you_mean(name, OPERATORS)
        return Named("signature" if own else "baseline", target, f"{error}; {near}")
    parameters = operator.entry or operator.registrations[0].parameters
    if why := schemas.entry_difference(parameters, overload.signature.parameters):
        source = "the operator's schema" if own else "its row in baselines/vllm_operators.py"
        return Named("signature" if own else "baseline", target, f"entry does not fit {source}: {why}")
    is_installed = importlib.util.find_spec("vllm") is not None
    return Named("baseline", target, later=is_installed, unseen="" if is_installed else NO_VLLM)


def _function(key: str, target: str, folders: tuple[Path, ...]) -> Named:
    """``package.module:function``."""
    owner, _, name = target.partition(":")
    path = _source(owner, folders)
    if path is None:
        return Named(key, target, f"there is no module '{owner}'")
    names = _names(path)
    if not names:
        return Named(key, target, later=True)
    known = name in names
    return Named(key, target, "" if known else f"{owner} has no function '{name}'; {did_you_mean(name, sorted(names))}")


def function_names(module: str) -> frozenset[str]:
    """The names that a module of kgbench defines at its top level, without importing it."""
    path = _source(module, ())
    return frozenset() if path is None else _names(path)


def _source(module: str, folders: tuple[Path, ...]) -> Path | None:
    """The file of a module; without the suffix ``.py`` if the module is not written in Python."""
    inside = module.replace(".", "/")
    for folder in folders:
        for path in (folder / f"{inside}.py", folder / inside / "__init__.py"):
            if path.is_file():
                return path
    try:
        spec = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        return None
    return None if spec is None else Path(spec.origin or module)


@functools.cache
def _names(path: Path) -> frozenset[str]:
    """The names that a module defines or imports at its top level; empty if its text does not show all of them."""
    if path.suffix != ".py":
        return frozenset()
    found: set[str] = set()
    for node in syntax.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        else:
            found |= {part.name for part in ast.walk(node) if isinstance(part, ast.FunctionDef)}
    return frozenset() if {"*", "__getattr__"} & found else frozenset(found)
