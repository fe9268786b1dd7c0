"""Which language a candidate is written in, by its text: what deadlines it gets, and what it lacks on this machine.

Only the text and what the referee's side knows of the machine count, never what a worker says: an import that fails
because its package is not here makes the candidate ``skipped``, one that the candidate makes fail does not. No torch.
"""

from __future__ import annotations

import ast
import importlib.util
import shutil
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from kgbench.core.details.absence import Lacking, Requirement
from kgbench.core.kinds import DeviceKind
from kgbench.harness.machine.environment import environment
from kgbench.harness.machine.settings import Deadlines

EXTENSIONS: Final = "torch.utils.cpp_extension"
"""Module with which a candidate builds a C++ extension."""
_PACKAGES: Final = {"cupy": "cupy", "cupyx": "cupy", "triton": "triton"}
"""Packages that a candidate may need, by the top-level module that it imports."""
_BRANCHES: Final = (ast.If, ast.IfExp, ast.Try, ast.TryStar, ast.Match)
"""Nodes inside which a missing package need not fail the text."""
_EMPTY: Final = ("None", "''", "[]", "()", "['']")
"""Values of ``cuda_sources``, as text, that hold no CUDA."""
_DEFAULT_CUDA: Final = "/usr/local/cuda"
"""Folder of the CUDA toolkit where CUDA_HOME names none."""


@dataclass(frozen=True)
class Uses:
    """What a text uses. ``needed``: outside ``if`` and ``try``, so that the text cannot run without it."""

    mentioned: frozenset[str]
    """Those of ``cupy``, ``triton``, ``torch.utils.cpp_extension`` and ``cuda_sources`` that occur anywhere in the
    text.
    """
    needed: frozenset[str]


@dataclass(frozen=True)
class Machine:
    """What the referee's side knows of the machine that candidates run on."""

    device_kind: DeviceKind
    cuda: str | None
    """The version that torch is built for."""
    packages: frozenset[str]
    """The packages of ``_PACKAGES``, and setuptools, that are installed."""
    compiler: bool
    headers: bool
    """True where Python's headers, which every extension includes, are installed."""
    ninja: bool
    nvcc: bool
    linkable: bool = True
    """True where the path of torch has no space: ``torch.utils.cpp_extension`` gives it to the linker unquoted."""


def deadlines_for(source: str | None, deadlines: Deadlines) -> Deadlines:
    """A candidate that builds a C++ extension may take ``extension_s`` for it, on import or in a first call."""
    if source is None or EXTENSIONS not in uses_of(source).mentioned:
        return deadlines
    return replace(
        deadlines,
        import_s=max(deadlines.import_s, deadlines.extension_s),
        compile_s=max(deadlines.compile_s, deadlines.extension_s),
        whole_s=deadlines.whole_s + deadlines.extension_s,
    )


def lacking(source: str, machine: Machine) -> Lacking | None:
    """What the candidate needs and this machine lacks; None when nothing is missing."""
    uses = uses_of(source)
    on_gpu = machine.device_kind == DeviceKind.CUDA
    wants_cuda = "cuda_sources" in (uses.mentioned if on_gpu else uses.needed)
    checks = (
        ("cupy" in uses.needed, on_gpu, Requirement.GPU_FOR_CUPY),
        ("cupy" in uses.needed, "cupy" in machine.packages, Requirement.CUPY),
        ("triton" in uses.needed, "triton" in machine.packages, Requirement.TRITON),
        (EXTENSIONS in uses.needed, machine.compiler, Requirement.COMPILER),
        (EXTENSIONS in uses.needed, machine.headers, Requirement.HEADERS),
        (EXTENSIONS in uses.needed, machine.ninja, Requirement.NINJA),
        (EXTENSIONS in uses.needed, "setuptools" in machine.packages, Requirement.SETUPTOOLS),
        (EXTENSIONS in uses.needed, machine.linkable, Requirement.FOLDER_WITHOUT_SPACE),
        (wants_cuda, on_gpu, Requirement.GPU_FOR_CUDA),
        (wants_cuda and on_gpu, machine.nvcc, Requirement.NVCC),
    )
    missing = tuple(what for needed, had, what in checks if needed and not had)
    return Lacking(missing, machine.cuda or "") if missing else None


def machine_of(device_kind: DeviceKind, cuda: str | None) -> Machine:
    """This machine, as a worker finds it; ``cuda`` is what torch is built for."""
    chosen = environment(device_kind)

    def found(program: str) -> bool:
        return shutil.which(program, path=chosen.get("PATH")) is not None

    torch = importlib.util.find_spec("torch")
    nvcc_folders = (chosen.get("CUDA_HOME", _DEFAULT_CUDA), _DEFAULT_CUDA)
    return Machine(
        device_kind,
        cuda,
        packages=frozenset(name for name in (*_PACKAGES, "setuptools") if importlib.util.find_spec(name)),
        compiler=found("c++"),
        headers=Path(sysconfig.get_paths()["include"], "Python.h").exists(),
        ninja=found("ninja"),
        nvcc=found("nvcc") or any(Path(folder, "bin/nvcc").exists() for folder in nvcc_folders),
        linkable=torch is None or " " not in str(torch.origin),
    )


@lru_cache(maxsize=64)
def uses_of(source: str) -> Uses:
    """What a text uses; nothing where it is not Python or nested too deep to be parsed: then it fails by itself."""
    try:
        tree = ast.parse(source.removeprefix("\ufeff"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Uses(frozenset(), frozenset())
    texts = _texts(tree)
    mentioned, needed = set(), set()
    for node, always in _walk(tree):
        for name in (*_imported(node), *_cuda_sources(node)):
            mentioned.add(name)
            certain = always and (name != "cuda_sources" or _is_text(node, texts))
            needed |= {name} if certain else set()
    return Uses(frozenset(mentioned), frozenset(needed))


def _walk(tree: ast.AST) -> Iterator[tuple[ast.AST, bool]]:
    """Every node, and whether it lies outside all branches."""
    waiting = [(tree, True)]
    while waiting:
        node, always = waiting.pop()
        yield node, always
        inside = always and not isinstance(node, _BRANCHES)
        waiting += [(child, inside) for child in ast.iter_child_nodes(node)]


def _imported(node: ast.AST) -> Iterator[str]:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        names = [f"{node.module}.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Attribute) and node.attr == "cpp_extension":
        names = [EXTENSIONS]
    for name in names:
        if name == EXTENSIONS or name.startswith(f"{EXTENSIONS}."):
            yield EXTENSIONS
        elif (package := _PACKAGES.get(name.partition(".")[0])) is not None:
            yield package


def _cuda_sources(node: ast.AST) -> Iterator[str]:
    value = _cuda_value(node)
    if value is not None and ast.unparse(value) not in _EMPTY:
        yield "cuda_sources"


def _cuda_value(node: ast.AST) -> ast.expr | None:
    """What a call passes as ``cuda_sources``, by name or as the third argument of ``load_inline``."""
    if not isinstance(node, ast.Call):
        return None
    named = next((each.value for each in node.keywords if each.arg == "cuda_sources"), None)
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    third = node.args[2] if called == "load_inline" and len(node.args) > 2 else None
    return named or third


def _is_text(node: ast.AST, texts: frozenset[str]) -> bool:
    """True where the value is a literal or a constant of the text, and so not chosen while the candidate runs."""
    value = _cuda_value(node)
    parts = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
    return all(isinstance(part, ast.Constant) or (isinstance(part, ast.Name) and part.id in texts) for part in parts)


def _texts(tree: ast.Module) -> frozenset[str]:
    """Names to which the text's top level assigns a string."""
    return frozenset(
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    )
