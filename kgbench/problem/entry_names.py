"""The names under which a candidate may define its entry. Imports no torch."""

from __future__ import annotations

import ast

from kgbench.problem.model import Problem
from kgbench.problem.suites import aten_overload


def entry_names(problem: Problem, source: str) -> dict[str, list[str]]:
    """For each overload, the names that a candidate may give its entry; the signature's name is first.

    The operator's bare name counts for every overload. It does not count in a source that defines the own name of one
    of several overloads.
    """
    bare = [problem.name, f"{problem.name}_kernel_impl"]
    own = {}
    for overload in problem.judged:
        entry, suffix = overload.signature.name, aten_overload(problem, overload)
        own[overload.name] = [entry, f"{problem.name}_{suffix}", f"{problem.name}__{suffix}_kernel_impl"]
    defined = _defined(source) if len(problem.overloads) > 1 else set()
    named = any(name in defined for names in own.values() for name in names if name not in bare)
    return {key: list(dict.fromkeys(names if named else (*names, *bare))) for key, names in own.items()}


def _defined(source: str) -> set[str]:
    """Names that a source defines, assigns or imports anywhere."""
    nodes = _nodes(source)
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    imported = {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return functions | imported | assigned


def _nodes(source: str) -> list[ast.AST]:
    """All nodes of a source's syntax tree; none when it is not valid Python or nested too deeply to parse."""
    try:
        return list(ast.walk(ast.parse(source.removeprefix("\ufeff"))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
