"""Reads a problem file whole: its keys, what concerns several of them, and, where something is wrong, all that is.

A file that is right is read once. Where the first complaint comes up, every key is read again on its own, so that who
writes a file hears of all mistakes at once. What a key takes is ``problemfile.py``'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from kgbench.core.errors import ExpressionError, ProblemFileError, ProblemFileErrors
from kgbench.core.names import did_you_mean
from kgbench.problem.calls import placeholders
from kgbench.problem.expressions import Expr
from kgbench.problem.format import (
    ALWAYS,
    BODY_KEYS,
    CALL_VARIABLES,
    HEAD_KEYS,
    INDEX_NAMES,
    KEYS,
    READERS,
    READERS_WITH_ENTRY,
    TENSOR_EXPRESSIONS,
    TIMED_KINDS,
    Body,
    call_names,
    check_head,
    one_line,
    read_parts,
    read_signature,
    read_text,
)
from kgbench.problem.model import KINDS, PRESETS, Argument, Overload, Problem, ScalarArgument, TensorArgument
from kgbench.problem.yamltree import Node, read_tree

MARK: Final = "# EDIT:"
"""Stands behind every line of a skeleton that its author has to change; `kgbench new` writes them."""

_MARKED: Final = re.compile(rf"(?P<text>.*?)\s*{MARK}\s*(?P<step>.*)")
_Complaint = ProblemFileError | ExpressionError
_T = TypeVar("_T")


def read_problem(path: Path) -> Problem:
    """The problem in ``path``; ProblemFileError, ExpressionError or ProblemFileErrors when it says anything wrong."""
    try:
        _check_marks(path)
        problem, bodies = read_parts(path)
        judged = [(b, o) for b, o in zip(bodies, problem.overloads, strict=True) if o.required or "cases" in b.own]
        for body, overload in judged:
            for check in Check(body, overload, problem.kind).each():
                check()
        for complain in _unused(judged):
            complain()
    except (ProblemFileError, ExpressionError, ProblemFileErrors) as first:
        raise _together(first, _Search(path).complaints()) from None
    return problem


def _check_marks(path: Path) -> None:
    if MARK not in (text := read_text(path)[1]):
        return
    found = [(number, _MARKED.match(line)) for number, line in enumerate(text.splitlines(), 1)]
    raise ProblemFileErrors(
        [
            ProblemFileError("KGB212", path, number, match["text"].strip().partition(":")[0],
                             "is still as kgbench new wrote it",
                             f"{match['step']}, then remove the comment '{MARK} …'")
            for number, match in found
            if match
        ]
    )  # fmt: skip


# --- all complaints ---


def _together(first: _Complaint | ProblemFileErrors, others: Sequence[_Complaint]) -> _Complaint | ProblemFileErrors:
    """One error about all that was found, by line. Of what follows from another complaint only that one stays."""
    known = list(first.complaints) if isinstance(first, ProblemFileErrors) else [first]
    every = {str(each): each for each in (*known, *others)}
    in_order = sorted(every.values(), key=lambda each: each.line if isinstance(each, ProblemFileError) else _line(each))
    return in_order[0] if len(in_order) == 1 else ProblemFileErrors(in_order)


def _line(error: ExpressionError) -> int:
    """Of a complaint about an expression, which begins as all do: FILE:LINE."""
    match = re.match(r".*?:(\d+): ", str(error))
    return int(match[1]) if match else 0


class _Search:
    """Reads each key of a wrong file on its own and keeps what is said about it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.found: list[_Complaint] = []
        self.judged: list[tuple[Body, Overload]] = []

    def complaints(self) -> list[_Complaint]:
        self._attempt(self._file)
        for complain in () if self.found else _unused(self.judged):
            self._attempt(complain)
        return self.found

    def _attempt(self, read: Callable[[], _T]) -> _T | None:
        try:
            return read()
        except (ProblemFileError, ExpressionError) as error:
            self.found.append(error)
            return None

    def _file(self) -> None:
        root = read_tree(self.path, read_text(self.path)[1])
        nodes = root.mapping()
        self._names(root, nodes, "problem", (*HEAD_KEYS, "doc"))
        if set(HEAD_KEYS) <= set(nodes):
            self._attempt(lambda: check_head(nodes))
        for key in ("summary", "category"):
            if key in nodes:
                self._attempt(partial(one_line, nodes[key]))
        if "doc" in nodes:
            self._attempt(nodes["doc"].text)
        kind = self._attempt(lambda: nodes["kind"].choice(KINDS)) if "kind" in nodes else None
        shared = {key: node for key, node in nodes.items() if key in BODY_KEYS}
        if "overloads" not in nodes:
            self._body(Body("", root, shared, frozenset(shared)), kind)
            return
        self._keys(shared, None, frozenset())
        for name, node in nodes["overloads"].mapping().items():
            own = self._attempt(node.mapping)
            if own is not None:
                self._names(node, own, "overload", ())
                known = {key: child for key, child in own.items() if key in KEYS["overload"]}
                self._body(Body(name, node, {**shared, **known}, frozenset(known)), kind)

    def _names(self, at: Node, nodes: dict[str, Node], place: str, required: Iterable[str]) -> None:
        """Unknown keys; and missing ones only where no unknown key may be one of them misspelt."""
        unknown = {name: child for name, child in nodes.items() if name not in KEYS[place]}
        for name, child in unknown.items():
            self._attempt(partial(child.fail, "KGB220", "unknown key", did_you_mean(name, KEYS[place])))
        for name in required if not unknown else ():
            if name not in nodes:
                self._attempt(partial(at.fail, "KGB222", f"'{name}' is missing", f"add '{name}: …'"))

    def _body(self, body: Body, kind: str | None) -> None:
        """Its keys one by one, and what concerns several only where each is right."""
        signature = None
        self._attempt(body.required)
        if "entry" in body.nodes:
            signature = self._attempt(lambda: read_signature(body.nodes["entry"]))
        if signature is not None:
            named = signature
            self._attempt(lambda: body.check_entry(named, self.path.parent.name, self.path.stem))
        self._keys(body.nodes, signature, body.own)
        if self.found or kind is None:
            return
        overload = self._attempt(lambda: body.read(kind, self.path.parent.name, self.path.stem))
        if overload is not None and (overload.required or "cases" in body.own):
            for check in Check(body, overload, kind).each():
                self._attempt(check)
            self.judged.append((body, overload))

    def _keys(self, nodes: dict[str, Node], signature: Any, own: frozenset[str]) -> None:
        for key, node in nodes.items():
            if key in READERS:
                self._attempt(partial(READERS[key], node))
            elif key in READERS_WITH_ENTRY and signature is not None:
                self._attempt(partial(READERS_WITH_ENTRY[key], node, signature, key in own))


# --- what concerns several keys ---


@dataclass(frozen=True)
class Check:
    """Checks an overload as a whole; each complaint stands at the key that has to change."""

    body: Body
    overload: Overload
    kind: str

    def each(self) -> tuple[Callable[[], None], ...]:
        return (self._outputs, self._alias, self._phases, self._value_sets, self._calls, self._variables)

    def _outputs(self) -> None:
        written = [each.name for each in self.overload.arguments if _access(each) != "read"]
        if self.overload.returned_argument and self.overload.returned_argument not in written:
            step = "give it access: write or readwrite, or remove 'returns'"
            self.body.nodes["returns"].fail("KGB243", f"'{self.overload.returned_argument}' is not written", step)
        if self.overload.signature.returns == "None" and not written and self.kind != "sync":
            step = "give one argument access: write or readwrite, or let entry return a Tensor"
            self.body.nodes["arguments"].fail("KGB251", "entry returns None and no argument is written", step)
        if not self.overload.dtypes:
            self.body.nodes["dtypes"].fail("KGB225", "expected at least one required dtype")

    def _alias(self) -> None:
        tensors = [each.name for each in self.overload.arguments if isinstance(each, TensorArgument)]
        alias = self.overload.alias
        by_aten = self.overload.baseline.get("cuda", "").startswith("aten:")
        if (self.kind == "view") != (alias is not None) and not (alias is None and by_aten):
            if alias is None:
                self.body.node.fail(
                    "KGB222", "'alias' is missing", "add 'alias: …', the argument whose storage a view shares"
                )
            self.body.nodes["alias"].fail("KGB224", f"belongs to kind view, and the kind is {self.kind}", "remove it")
        if alias is not None and alias not in tensors:
            self.body.nodes["alias"].fail("KGB233", f"there is no tensor '{alias}'", did_you_mean(alias, tensors))

    def _phases(self) -> None:
        cases = self.body.nodes["cases"]
        if not self.overload.check:
            cases.mapping()["check"].fail("KGB225", "expected at least one case")
        if self.kind not in TIMED_KINDS or not self.overload.required:
            return
        if not self.overload.baseline:
            self.body.need("baseline")
        if "cpu" not in self.overload.bench or len(self.overload.bench) < 2:
            step = f"give cases for cpu and for one or more of {', '.join(PRESETS[1:])}"
            cases.mapping().get("bench", cases).fail("KGB252", f"kind {self.kind} is timed on every device", step)

    def _value_sets(self) -> None:
        known = {name for each in self.overload.arguments for name in getattr(each, "draw", {})} | {"default"}
        for node, values in self.case_nodes():
            named = values.get("values", "default")
            for wanted in named["choice"] if isinstance(named, dict) else (named,):
                if wanted not in known:
                    node.mapping()["values"].fail(
                        "KGB233", f"no argument draws '{wanted}'", did_you_mean(wanted, sorted(known))
                    )

    def _calls(self) -> None:
        """Every `$name` of a call has a value, and where no call gives a tensor its argument has a shape."""
        for node, values in self.case_nodes():
            if not (text := values.get("call", "")):
                self._shapes(node)
                continue
            known = {*ALWAYS, *self.overload.defaults, *values}
            for name in sorted(set(placeholders(text)) - known):
                node.fail(
                    "KGB253", f"has no value for '${name}' of its call", f"add '{name}: …' here or under defaults"
                )

    def _shapes(self, node: Node) -> None:
        key = self.body.nodes["arguments"]
        for parameter, each in zip(self.overload.signature.parameters, self.overload.arguments, strict=True):
            if isinstance(each, ScalarArgument) and each.is_default and not parameter.has_default:
                key.fail(
                    "KGB242",
                    f"parameter '{parameter.name}' of entry has no argument",
                    f"add '{parameter.name}: {{value: …}}'",
                )
            if isinstance(each, TensorArgument) and each.shape is None:
                key.mapping()[each.name].fail(
                    "KGB222", "'shape' is missing", f"add it: the case at line {node.line} is no call that gives one"
                )

    def _variables(self) -> None:
        given = ALWAYS | set(self.overload.defaults)
        readers = _readers(self.overload)
        by_call = call_names(self.overload)
        for node, values in self.case_nodes():
            known = {*given, *values, *(by_call if values.get("call") else ())}
            for where, expr in readers:
                missing = sorted(expr.names - known - (set(INDEX_NAMES) if where.endswith(".live") else set()))
                if missing:
                    self._missing(node, missing[0], where, known)
                if where.startswith("variables."):
                    known.add(where.removeprefix("variables."))

    def _missing(self, node: Node, name: str, where: str, known: Iterable[str]) -> None:
        anywhere = {key for _, values in self.case_nodes() for key in values} | set(self.overload.defaults)
        if name in anywhere:
            node.fail(
                "KGB253", f"has no value for '{name}', which {where} reads", f"add '{name}: …' here or under defaults"
            )
        at = self.body.nodes
        for part in where.split("."):
            found = at.get(part)
            if found is None:
                break
            reader, at = found, found.mapping() if found.is_mapping() else {}
        if name in self.overload.variables:
            reader.fail("KGB254", f"reads '{name}', which is derived after it", "put it below")
        every = sorted({*known, *self.overload.variables} - {name})
        reader.fail("KGB255", f"reads '{name}', which no case gives", did_you_mean(name, every))

    def case_nodes(self) -> list[tuple[Node, dict[str, Any]]]:
        """Every case as written, with its values; fuzz counts as one."""
        nodes = self.body.nodes["cases"].mapping()
        found = [(n, t.variables) for n, t in zip(nodes["check"].sequence(), self.overload.check, strict=True)]
        if self.overload.opinfo:
            listed = nodes["opinfo"].sequence()
            found += [(n, t.variables) for n, t in zip(listed, self.overload.opinfo, strict=True)]
        if (fuzz := self.overload.fuzz) is not None:
            call = {"call": fuzz.call} if fuzz.call else {}
            found.append((nodes["fuzz"].mapping()["draw"], {**fuzz.draw, **call}))
        for preset, templates in self.overload.bench.items():
            listed = nodes["bench"].mapping()[preset].sequence()
            found += [(n, t.variables) for n, t in zip(listed, templates, strict=True)]
        return found


def _access(argument: Argument) -> str:
    return argument.access if isinstance(argument, TensorArgument) else "read"


def _readers(overload: Overload) -> list[tuple[str, Expr]]:
    """Every expression of the overload with its key, derived variables first and in order."""
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


def _unused(judged: Sequence[tuple[Body, Overload]]) -> Iterator[Callable[[], None]]:
    """Complaints about case variables that nothing reads, which are misspelt ones. What ``prepare`` reads cannot be
    seen.
    """
    if any(overload.prepare for _, overload in judged):
        return
    read: set[str] = {"call"}
    for body, overload in judged:
        cases = Check(body, overload, "").case_nodes()
        calls = [values["call"] for _, values in cases if "call" in values]
        read |= set(CALL_VARIABLES) if calls else set()
        read |= {each.name for each in overload.arguments if isinstance(each, ScalarArgument) and each.is_default}
        read |= {name for text in calls for name in placeholders(text)}
        for key, expr in _readers(overload):
            read |= expr.names - (set(INDEX_NAMES) if key.endswith(".live") else set())
    for body, overload in judged:
        places = list(Check(body, overload, "").case_nodes())
        if "defaults" in body.nodes:
            places.append((body.nodes["defaults"], overload.defaults))
        for node, values in places:
            for name in values:
                if name not in read | ALWAYS:
                    yield partial(
                        node.mapping()[name].fail,
                        "KGB256",
                        "no expression reads this variable",
                        did_you_mean(name, sorted(read)),
                    )
