"""Whether the functions and routines that a problem file names are there, told without importing them or torch."""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Iterator, Sequence
from pathlib import Path

from kgbench.baselines.routines import ROUTINES
from kgbench.core import syntax
from kgbench.core.names import did_you_mean
from kgbench.problem.format.leaves import DOTTED
from kgbench.problem.model import Overload


def named_targets(overload: Overload) -> Iterator[tuple[str, str]]:
    """Key and target of everything that the file of an overload names, or that follows from its name."""
    yield from (("baseline", target) for target in dict.fromkeys(overload.baseline.values()))
    reference = overload.reference if DOTTED.match(overload.reference) else None
    paths = {
        "fallback": overload.fallback, "reference": reference, "prepare": overload.prepare,
        "canonical": overload.canonical,
    }  # fmt: skip
    yield from ((key, path) for key, path in paths.items() if path)


def why_missing(target: str, folders: Sequence[Path]) -> str:
    """What is not there; empty where all is, and for operators of ATen and vLLM, which only these know.

    ``folders`` are looked through before the installed packages: those that hold the user's problems.
    """
    owner, _, name = target.partition(":")
    if owner in ("aten", "vllm"):
        return ""
    if owner in ("cublas", "openblas"):
        return "" if name in ROUTINES else f"no routine '{name}' is known; {did_you_mean(name, ROUTINES)}"
    path = _source(owner, tuple(folders))
    if path is None:
        return f"there is no module '{owner}'"
    names = _names(path)
    return (
        "" if not names or name in names else f"{owner} has no function '{name}'; {did_you_mean(name, sorted(names))}"
    )


def _source(module: str, folders: tuple[Path, ...]) -> Path | None:
    """The file of a module; one without a suffix ``.py`` for what is not written in Python."""
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
    """What a module defines or imports at its top level; empty where its text does not tell."""
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
