"""Under which names a candidate may define what a problem asks for. No torch."""

from __future__ import annotations

import ast

from kgbench.problem.model import Problem
from kgbench.problem.suites import aten_overload


def entry_names(problem: Problem, source: str) -> dict[str, list[str]]:
    """By overload the names under which a candidate may define its entry, the signature's first.

    The operator's bare name serves every overload, but only in a file that names none of several.
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
    """Names that a text defines or imports anywhere."""
    nodes = _nodes(source)
    functions = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    imported = {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    assigned = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return functions | imported | assigned


def _nodes(source: str) -> list[ast.AST]:
    """Everything in a text's syntax tree; nothing when it is no Python, or nested beyond what can be parsed."""
    try:
        return list(ast.walk(ast.parse(source.removeprefix("\ufeff"))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
