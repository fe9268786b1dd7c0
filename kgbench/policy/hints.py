"""Finds calls in a candidate's source that the policy seems to forbid. Imports no torch.

They are hints for the report, never a verdict: source can hide what it calls, and a name can mean something else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kgbench.core import syntax
from kgbench.policy.rules import Verdict, allowed, below, module_rule
from kgbench.policy.tables import METHODS, MODULE_EXCEPTIONS, PLAIN
from kgbench.problem.model import Problem

_FOREIGN: Final = re.compile(
    r"lib(?:cublas|cudnn|cusparse|cusolver)\w*|-l(?:cublas|cudnn|cusparse|cusolver)\w*"
    r"|<(?:cublas|cudnn|cusparse|cusolver|cutensor)\w*\.h>|\b(?:cublas|cudnn|cusparse|cusolver)[A-Z]\w*(?=\s*\()"
    r"|\b(?:at|torch)::(?:_?softmax|addmm|bmm|conv\w*|einsum|linear|matmul|mm|scaled_dot_product_attention)\b"
)
"""Matches uses of NVIDIA's libraries and of ATen's operators in C++ source and in names of libraries."""


@dataclass(frozen=True)
class Hint:
    """One forbidden use in a candidate's source."""

    line: int
    """Line in the source, counted from 1."""
    what: str
    """The use, as part of a sentence: ``calls torch.matmul``."""
    rule: str

    def __str__(self) -> str:
        return f"line {self.line} {self.what}, which {self.rule}"


def hints(problem: Problem, source: str) -> list[Hint]:
    """Forbidden uses in a candidate's source, sorted by line, each once. Empty when the source is not valid Python."""
    try:
        tree = syntax.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    found = {(hint.what, hint.rule): hint for hint in sorted(_found(problem, tree), key=lambda hint: -hint.line)}
    return sorted(found.values(), key=lambda hint: (hint.line, hint.what))


def _found(problem: Problem, tree: ast.Module) -> Iterator[Hint]:
    names = _imported(tree)
    documents = {id(node.body[0].value) for node in ast.walk(tree) if _has_docstring(node)}  # type: ignore[attr-defined]
    for node in _on_the_host(tree, names):
        match node:
            case ast.Import() | ast.ImportFrom():
                yield from _import(problem, node)
            case ast.Call(func=function):
                yield from _call(problem, function, names)
            case ast.BinOp(op=ast.MatMult()) | ast.AugAssign(op=ast.MatMult()):
                yield Hint(node.lineno, "uses @", _rule(problem, allowed(problem, "aten::matmul").why))
            case ast.Constant(value=str(text)) if id(node) not in documents:
                for match in _FOREIGN.finditer(text):
                    line = node.lineno + text[: match.start()].count("\n")
                    yield Hint(line, f"names {match[0]}", _rule(problem, "a library does the work then"))


def _call(problem: Problem, function: ast.expr, names: dict[str, str]) -> Iterator[Hint]:
    dotted = _dotted(function, names)
    if dotted is None:
        if isinstance(function, ast.Attribute) and function.attr in METHODS and not _is_super(function.value):
            why = allowed(problem, f"aten::{function.attr}").why
            yield Hint(function.lineno, f"calls .{function.attr}()", _rule(problem, why))
        return
    why = _why_not(problem, dotted)
    if why:
        yield Hint(function.lineno, f"calls {dotted}", _rule(problem, why))


def _why_not(problem: Problem, dotted: str) -> str:
    """Why a function may not be called; empty when its name breaks no rule."""
    exception = next((MODULE_EXCEPTIONS[each] for each in MODULE_EXCEPTIONS if below(dotted, each)), None)
    if exception is None and (why := module_rule(dotted)):
        return why
    parts = dotted.split(".")
    if exception is not None:
        verdict = allowed(problem, f"aten::{exception}")
    elif dotted.startswith("torch.ops.") and len(parts) in (4, 5):
        verdict = allowed(problem, dotted)
    elif parts[:2] == ["torch", "Tensor"] and len(parts) == 3:
        verdict = allowed(problem, f"aten::{parts[2]}") if parts[2] in METHODS else Verdict(True, "")
    elif parts[0] == "torch" and len(parts) == 2 and parts[1][0].islower() and parts[1] not in PLAIN:
        verdict = allowed(problem, f"aten::{parts[1]}")
    else:
        return ""
    return "" if verdict.allowed else verdict.why


def _import(problem: Problem, node: ast.Import | ast.ImportFrom) -> Iterator[Hint]:
    """Hints about imported modules that the policy forbids, other than parts of torch."""
    modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
    for module in modules:
        why = module_rule(module)
        if why and module.partition(".")[0] != "torch":
            yield Hint(node.lineno, f"imports {module}", _rule(problem, why))


def _rule(problem: Problem, why: str) -> str:
    return f"{problem.kind} candidates may not use (policy: {why})"


def _imported(tree: ast.AST) -> dict[str, str]:
    """The full dotted name of each imported name."""
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def _dotted(node: ast.expr, names: dict[str, str]) -> str | None:
    """Full name: ``torch.nn.functional.softmax`` for ``F.softmax``. None if it begins with no imported name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in names:
        return None
    return ".".join([names[node.id], *reversed(parts)])


def _on_the_host(node: ast.AST, names: dict[str, str]) -> Iterator[ast.AST]:
    """Every node outside device functions (Triton, Numba, CUTLASS, TileLang), where names have other meanings."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef) and any(_is_triton(each, names) for each in child.decorator_list):
            continue
        yield child
        yield from _on_the_host(child, names)


def _is_triton(decorator: ast.expr, names: dict[str, str]) -> bool:
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (_dotted(function, names) or "").partition(".")[0] in ("triton", "numba", "cutlass", "tilelang")


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


def _has_docstring(node: ast.AST) -> bool:
    with_body = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return (
        isinstance(node, with_body)
        and bool(node.body)
        and isinstance(node.body[0], ast.Expr)
        and isinstance(node.body[0].value, ast.Constant)
    )
