"""Required results for special arguments: prompts list them, check cases contain them, references are held to them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from kgbench.core.errors import ProblemFileError
from kgbench.problem.calls import parse
from kgbench.problem.expressions import Expr
from kgbench.problem.format.body import Part
from kgbench.problem.model import Access, Argument, CaseTemplate, Draw, Edge, Overload, Signature, TensorArgument
from kgbench.problem.yamltree import node_of

GIVES = "gives"
"""Key of a row's result. Its other keys are parameters of the entry."""
REPEATED = 3
"""Number of times that each row's values are repeated in the tensors of its case."""


def with_edges(part: Part, overload: Overload) -> Overload:
    """The overload with the rows that concern it, and with one check case per group of rows with the same numbers."""
    edges = tuple(edge for edge in _rows(part) if _concerns(edge, overload))
    arguments, check = list(overload.arguments), list(overload.check)
    for number, rows in enumerate(_alike(edges, overload), 1):
        name = f"edges-{number}"
        for at, argument in enumerate(arguments):
            if argument.name in rows[0].given and isinstance(argument, TensorArgument):
                arguments[at] = _drawing(argument, name, rows)
        check.append(CaseTemplate({"values": name}, rows[0].line, parse(_call(overload.signature, rows, arguments))))
    return replace(overload, edges=edges, arguments=tuple(arguments), check=tuple(check))


def _rows(part: Part) -> list[Edge]:
    found = []
    for row, datum in zip(part.get("edges") or (), part.data.get("edges", ()), strict=True):
        given = {name: value.evaluate({}) for name, value in row.items() if name != GIVES}
        gives = row[GIVES].evaluate({})
        found.append(Edge(given, gives if isinstance(gives, tuple) else (gives,), node_of(datum).line))
    return found


def edge_errors(rows: Sequence[Mapping[str, Expr]], at: Any, names: Sequence[str]) -> list[ProblemFileError]:
    """Errors about rows that have no result, no argument, or a name that is no parameter in ``names``."""
    errors = []
    for row, datum in zip(rows, at, strict=True):
        unknown = sorted(row.keys() - {GIVES, *names})
        if GIVES not in row or len(row) < 2:
            step = "write {self: nan, gives: nan}, or gives: [inf, nan] where either is right"
            errors.append(node_of(datum).complaint("KGB222", f"'{GIVES}' or an argument is missing", step))
        elif unknown:
            errors.append(node_of(datum).complaint("KGB233", f"entry has no parameter '{unknown[0]}'"))
    return errors


def _concerns(edge: Edge, overload: Overload) -> bool:
    """Whether a row gives every argument that the overload reads and needs, and no other."""
    parameters = {each.name: each for each in overload.signature.parameters}
    read = {each.name for each in overload.arguments if getattr(each, "access", Access.READ) != Access.WRITE}
    needed = {name for name in read if not parameters[name].has_default}
    return edge.given.keys() <= read and needed <= edge.given.keys()


def _alike(edges: Sequence[Edge], overload: Overload) -> list[list[Edge]]:
    """Rows grouped by the arguments given and by the values of those that are not tensors. One call per group."""
    tensors = {each.name for each in overload.arguments if isinstance(each, TensorArgument)}
    groups: dict[str, list[Edge]] = {}
    for edge in edges:
        numbers = {name: value for name, value in sorted(edge.given.items()) if name not in tensors}
        groups.setdefault(f"{sorted(edge.given)} {numbers}", []).append(edge)
    return list(groups.values())


def _drawing(argument: TensorArgument, name: str, rows: Sequence[Edge]) -> TensorArgument:
    values = ", ".join(_written(row.given[argument.name]) for row in rows)
    draw = Draw("listed", (Expr.parse(f"({values},)"),))
    return replace(argument, draw={**argument.draw, name: draw})


def _call(signature: Signature, rows: Sequence[Edge], arguments: Sequence[Argument]) -> str:
    tensors = {each.name for each in arguments if isinstance(each, TensorArgument)}
    first, positional, named = rows[0].given, [], []
    for parameter in signature.parameters:
        if parameter.name not in first:
            continue
        is_tensor = parameter.name in tensors
        text = f"T([{REPEATED * len(rows)}], $dtype)" if is_tensor else _written(first[parameter.name])
        if parameter.keyword_only:
            named.append(f"{parameter.name!r}: {text}")
        else:
            positional.append(text)
    return f"(({', '.join(positional)},), {{{', '.join(named)}}})"


def _written(value: Any) -> str:
    """A number as text of an expression."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return repr(value)
