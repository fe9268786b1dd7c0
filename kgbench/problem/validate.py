"""Reads a whole problem file: each key alone, then several together. Reports everything that is wrong at once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kgbench.core.errors import ExpressionError, ProblemFileError
from kgbench.core.kinds import Kind
from kgbench.core.names import did_you_mean
from kgbench.problem.expressions import Expr
from kgbench.problem.format.arguments import Arguments
from kgbench.problem.format.body import Part
from kgbench.problem.format.edges import edge_errors, with_edges
from kgbench.problem.format.file import Written, all_together, read_keys, read_text
from kgbench.problem.format.fragments import whole_doc
from kgbench.problem.format.overload import judged_overload, named_overload
from kgbench.problem.model import (
    ALWAYS,
    CALL_OPTIONS,
    GPU_PRESETS,
    LARGE_OPTIONS,
    TIMED_KINDS,
    Access,
    Argument,
    Overload,
    Problem,
    ScalarArgument,
    TensorArgument,
    takes_tensors,
)
from kgbench.problem.yamltree import Complaint, Node

Errors = Iterator[ProblemFileError | ExpressionError]

INDEX_NAMES: Final = frozenset("ijkl")
TENSOR_EXPRESSIONS: Final = ("count", "shape", "dtype", "strides", "offset", "shuffled", "live", "none_when")


def read_problem(path: Path) -> Problem:
    """The problem in ``path``. Raises ProblemFileError, ExpressionError or ProblemFileErrors for anything wrong."""
    raw, text = read_text(path)
    written = read_keys(path, text)
    parts, errors = written.parts(), list(written.errors)
    arguments = _arguments(parts, errors)
    for part in parts:
        errors += [*part.entry_errors(), *part.missing()]
    errors += _edge_errors(parts)
    doc, shared = _doc(written, errors)
    if errors:
        raise all_together(errors)
    overloads = tuple(
        with_edges(part, judged_overload(part, found)) if part.judged else named_overload(part)
        for part, found in zip(parts, arguments, strict=True)
    )
    judged = [(part, each) for part, each in zip(parts, overloads, strict=True) if part.judged]
    if errors := [*_between_keys(written, judged)]:
        raise all_together(errors)
    file = written.file
    return Problem(
        id=f"{path.parent.name}/{path.stem}",
        source=path.parent.name,
        name=path.stem,
        summary=file.summary or "",
        category=file.category or "",
        kind=written.kind,
        doc=doc,
        overloads=overloads,
        path=path,
        sha256=hashlib.sha256(raw + shared.encode()).hexdigest(),
    )


def _arguments(parts: Sequence[Part], errors: list[Any]) -> list[tuple[Argument, ...]]:
    """The arguments of each part; none if it is only named, or if a key that determines them is wrong."""
    elsewhere = {each.name for part in parts if "entry" in part.values for each in part.signature.parameters}
    found: list[tuple[Argument, ...]] = []
    for part in parts:
        reading = Arguments(part, elsewhere)
        if part.judged and {"entry", "arguments", "cases"} <= set(part.values):
            reading.read()
        found.append(tuple(reading.found))
        errors += reading.errors
    return found


def _edge_errors(parts: Sequence[Part]) -> list[ProblemFileError]:
    names = {each.name for part in parts if "entry" in part.values for each in part.signature.parameters}
    part = next((part for part in parts if part.get("edges")), None)
    return [] if part is None else edge_errors(part.values["edges"], part.data["edges"], sorted(names))


def _doc(written: Written, errors: list[Any]) -> tuple[str, str]:
    try:
        return whole_doc(written.file.node("doc"), written.file.doc) if written.file.doc else ("", "")
    except Complaint as complaint:
        errors += complaint.errors
        return "", ""


def _between_keys(written: Written, judged: Sequence[tuple[Part, Overload]]) -> Errors:
    if not any(overload.required for _, overload in judged):
        root, step = written.data.node, "remove one 'required: false'"
        yield root.complaint("KGB250", "no overload is required, so nothing would be judged", step)
    found = [error for part, overload in judged for error in Check(part, overload).errors()]
    yield from found or _unused(judged)


@dataclass(frozen=True)
class Check:
    """Checks an overload as a whole; each complaint names the key that must change."""

    part: Part
    overload: Overload

    def errors(self) -> Errors:
        for check in (self._outputs, self._alias, self._phases, self._value_sets, self._calls, self._variables):
            yield from check()

    def _outputs(self) -> Errors:
        part, overload = self.part, self.overload
        written = [each.name for each in overload.arguments if _access(each) != Access.READ]
        if overload.returned_argument and overload.returned_argument not in written:
            step = "give it access: write or readwrite, or remove 'returns'"
            yield part.at("returns").complaint("KGB243", f"'{overload.returned_argument}' is not written", step)
        if overload.signature.returns == "None" and not written and part.kind != Kind.SYNC:
            step = "give one argument access: write or readwrite, or let entry return a Tensor"
            yield part.at("arguments").complaint("KGB251", "entry returns None and no argument is written", step)
        if not overload.dtypes:
            yield part.at("dtypes").complaint("KGB225", "expected at least one required dtype")

    def _alias(self) -> Errors:
        part, alias = self.part, self.overload.alias
        tensors = [each.name for each in self.overload.arguments if isinstance(each, TensorArgument)]
        by_aten = self.overload.baseline.get("cuda", "").startswith("aten:")
        if alias is None and part.kind == Kind.VIEW and not by_aten:
            step = "add 'alias: …', the argument whose storage a view shares"
            yield part.node.complaint("KGB222", "'alias' is missing", step)
        if alias is not None and part.kind != Kind.VIEW:
            yield part.at("alias").complaint(
                "KGB224", f"belongs to kind view, and the kind is {part.kind}", "remove it"
            )
        elif alias is not None and alias not in tensors:
            yield part.at("alias").complaint("KGB233", f"there is no tensor '{alias}'", did_you_mean(alias, tensors))

    def _phases(self) -> Errors:
        part, bench = self.part, self.overload.bench
        if part.kind not in TIMED_KINDS or not self.overload.required:
            return
        if "cpu" not in bench or len(bench) < 2:
            cases = part.cases
            node = cases.node("bench") if cases.bench is not None else part.at("cases")
            step = f"give cases for cpu and for gpu, or for one or more of {', '.join(GPU_PRESETS)}"
            yield node.complaint("KGB252", f"kind {part.kind} is timed on every device", step)

    def _value_sets(self) -> Errors:
        known = {name for each in self.overload.arguments for name in getattr(each, "draw", {})} | {"default"}
        for node, values in self.part.case_nodes():
            named = values.get("values", "default")
            for wanted in named["choice"] if isinstance(named, dict) else (named,):
                if wanted not in known:
                    at, step = node.mapping()["values"], did_you_mean(wanted, sorted(known))
                    yield at.complaint("KGB233", f"no argument draws '{wanted}'", step)

    def _calls(self) -> Errors:
        """Check that every `$name` of a call has a value, and that each tensor that no call gives has a shape."""
        for node, values in self.part.case_nodes():
            if "call" not in values:
                yield from self._shapes(node)
                continue
            known = {*ALWAYS, *self.overload.defaults, *values}
            for name in sorted(set(values["call"].names) - known):
                step = f"add '{name}: …' here or under defaults"
                yield node.complaint("KGB253", f"has no value for '${name}' of its call", step)

    def _shapes(self, node: Node) -> Errors:
        arguments = self.part.at("arguments")
        for parameter, each in zip(self.overload.signature.parameters, self.overload.arguments, strict=True):
            if isinstance(each, ScalarArgument) and each.is_default and not parameter.has_default:
                step = f"give cases a variable '{parameter.name}', or add '{parameter.name}: {{value: …}}'"
                what = f"parameter '{parameter.name}' of entry has no argument, and no case a variable of its name"
                yield arguments.complaint("KGB242", what, step)
            if isinstance(each, TensorArgument) and each.shape is None:
                step = f"add it: the case at line {node.line} is no call that gives one"
                yield arguments.mapping()[each.name].complaint("KGB222", "'shape' is missing", step)

    def _variables(self) -> Errors:
        given = ALWAYS | set(self.overload.defaults)
        readers = _readers(self.overload)
        by_call = call_names(self.overload)
        for node, values in self.part.case_nodes():
            known = {*given, *values, *(by_call if "call" in values else ())}
            for where, expr in readers:
                missing = sorted(expr.names - known - (INDEX_NAMES if where.endswith(".live") else set()))
                if missing:
                    yield self._missing(node, missing[0], where, known)
                if where.startswith("variables."):
                    known.add(where.removeprefix("variables."))

    def _missing(self, node: Node, name: str, where: str, known: Iterable[str]) -> ProblemFileError:
        anywhere = {key for _, values in self.part.case_nodes() for key in values} | set(self.overload.defaults)
        if name in anywhere:
            step = f"add '{name}: …' here or under defaults"
            return node.complaint("KGB253", f"has no value for '{name}', which {where} reads", step)
        reader = self._deepest(where)
        if name in self.overload.variables:
            return reader.complaint("KGB254", f"reads '{name}', which is derived after it", "put it below")
        every = sorted({*known, *self.overload.variables} - {name})
        return reader.complaint("KGB255", f"reads '{name}', which no case gives", did_you_mean(name, every))

    def _deepest(self, where: str) -> Node:
        """The key of a dotted path, or its deepest parent that the file has."""
        first, *rest = where.split(".")
        reader = self.part.at(first)
        for part in rest:
            children = reader.mapping() if reader.is_mapping() else {}
            if part not in children:
                break
            reader = children[part]
        return reader


def call_names(overload: Overload) -> frozenset[str]:
    """The variables that a case has because it is a call."""
    names = set(CALL_OPTIONS)
    for parameter in overload.signature.parameters:
        parts = ("_shape", "_strides", "_dtype") if takes_tensors(parameter) else ("",)
        names |= {f"{parameter.name}{part}" for part in parts}
    return frozenset(names)


def _access(argument: Argument) -> str:
    return argument.access if isinstance(argument, TensorArgument) else Access.READ


def _readers(overload: Overload) -> list[tuple[str, Expr]]:
    """Every expression of the overload with its key; derived variables come first, in order."""
    found = [(f"variables.{name}", expr) for name, expr in overload.variables.items()]
    for each in overload.arguments:
        key = f"arguments.{each.name}"
        if isinstance(each, ScalarArgument):
            found.append((f"{key}.value", each.value))
            continue
        named = [(name, getattr(each, name)) for name in TENSOR_EXPRESSIONS]
        found += [(f"{key}.{name}", expr) for name, expr in named if expr is not None]
        found += [(f"{key}.draw.{name}", expr) for name, draw in each.draw.items() for expr in draw.arguments]
    for item in overload.returns:
        parts = [("dtype", item.dtype), ("shape", item.shape), ("strides", item.strides)]
        found += [(f"returns.{name}", expr) for name, expr in parts if expr is not None]
    for name in ("length", "compute"):
        if getattr(overload.tolerance, name) is not None:
            found.append((f"tolerance.{name}", getattr(overload.tolerance, name)))
    if overload.cost is not None:
        found += [("cost.flops", overload.cost.flops), ("cost.bytes", overload.cost.bytes)]
    return found


def _unused(judged: Sequence[tuple[Part, Overload]]) -> Errors:
    """Complaints about case variables that nothing reads: they are misspelt. ``prepare``'s reads are not visible."""
    if any(overload.prepare for _, overload in judged):
        return
    read = {"call"}.union(*(_read_names(part, overload) for part, overload in judged))
    for part, overload in judged:
        places, options = [*part.case_nodes()], set(LARGE_OPTIONS) if overload.large else set()
        if "defaults" in part.data:
            places.append((part.at("defaults"), overload.defaults))
        for node, values in places:
            for name in values:
                if name not in read | ALWAYS | options:
                    step = did_you_mean(name, sorted(read))
                    yield node.mapping()[name].complaint("KGB256", "no expression reads this variable", step)


def _read_names(part: Part, overload: Overload) -> set[str]:
    calls = [values["call"] for _, values in part.case_nodes() if "call" in values]
    read = set(CALL_OPTIONS) if calls else set()
    read |= {each.name for each in overload.arguments if isinstance(each, ScalarArgument) and each.is_default}
    read |= {name for call in calls for name in call.names}
    for key, expr in _readers(overload):
        read |= expr.names - (INDEX_NAMES if key.endswith(".live") else set())
    return read
