"""The problem file's format: which keys there are, what each takes, and how they become a ``Problem``.

``KEYS`` is the table that the reader and docs/problem-format.md both follow. Files, lines and YAML's traps are
``yamltree.py``'s, what concerns several keys ``problemchecks.py``'s, concrete cases ``cases.py``'s.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kgbench.core import syntax
from kgbench.core.errors import ProblemFileError
from kgbench.core.names import did_you_mean
from kgbench.problem.calls import TraceError, parse_call, placeholders
from kgbench.problem.expressions import CONSTANTS, ITEMSIZE, Expr, reference_names
from kgbench.problem.model import (
    KINDS,
    PRESETS,
    RULES,
    SOURCE_NAME,
    SOURCES,
    Argument,
    CaseTemplate,
    Cost,
    Draw,
    Fuzz,
    Needs,
    Overload,
    Parameter,
    Problem,
    Returned,
    ScalarArgument,
    Signature,
    TensorArgument,
    Tolerance,
)
from kgbench.problem.mutants import MUTANTS
from kgbench.problem.yamltree import Node, read_tree

HEAD_KEYS: Final = ("summary", "kind", "category")
BODY_KEYS: Final = (
    "entry", "returns", "values", "dtypes", "defaults", "variables", "arguments", "cases", "baseline", "fallback",
    "reference", "prepare", "tolerance", "cost", "alias", "mutants", "canonical", "needs",
)  # fmt: skip
KEYS: Final[dict[str, tuple[str, ...]]] = {
    "problem": (*HEAD_KEYS, *BODY_KEYS, "doc", "overloads"),
    "overload": ("required", "reason", *BODY_KEYS),
    "dtypes": ("required", "optional"),
    "returns": ("dtype", "shape", "strides"),
    "tensor": (
        "access",
        "count",
        "shape",
        "dtype",
        "strides",
        "offset",
        "passed",
        "shuffled",
        "live",
        "draw",
        "none_when",
        "device",
    ),
    "scalar": ("value",),
    "cases": ("check", "opinfo", "fuzz", "bench"),
    "fuzz": ("count", "call", "draw", "dtypes"),
    "drawn": ("range", "choice"),
    "bench": PRESETS,
    "baseline": ("cuda", "cpu"),
    "tolerance": ("rule", "length", "ulps", "compute"),
    "cost": ("flops", "bytes"),
    "mutants": ("equivalent",),
    "needs": ("capability", "reason"),
}
"""Every key of the format, by the place where it may stand."""

DRAWS: Final[dict[str, tuple[int, int]]] = {
    "normal": (0, 2), "uniform": (0, 2), "integers": (2, 2), "odd_integers": (1, 1), "signs": (0, 0), "full": (1, 1),
    "zeros": (0, 0), "distinct": (1, 1), "permutation": (0, 0), "special": (0, 1), "dominant": (0, 0), "arange": (0, 1),
    "choice": (1, 1),
}  # fmt: skip
"""Fewest and most arguments of each way to draw values; ``kgbench/harness/verdict/inputs.py`` has the functions."""

CASE_VARIABLES: Final[dict[str, Any]] = {"values": "default", "exact": False, "unjudged": False}
"""Variables with a meaning of their own that every case has, and what they are when a case does not set them."""
CALL_VARIABLES: Final[dict[str, Any]] = {"offset": 0, "lazy": "", "late": False}
"""The same of cases that are calls: elements of storage before each tensor's first, the lazy bit of each, and whether
their values are still being written on the current stream when the call is made.
"""
LAZY: Final = ("", "conj", "neg")

INDEX_NAMES: Final = ("i", "j", "k", "l")
TYPES: Final = (
    "Tensor", "int", "float", "complex", "bool", "str", "dtype", "Scalar", "layout", "device", "memory_format",
    "Generator", "list[Tensor]", "list[Tensor | None]", "list[int]", "list[float]", "list[bool]",
)  # fmt: skip
TENSOR_LISTS: Final = ("list[Tensor]", "list[Tensor | None]")
TIMED_KINDS: Final = ("compute", "random")
ACCESSES: Final = ("read", "write", "readwrite")
WAYS_TO_PASS: Final = ("view", "storage", "pointers")

ALWAYS: Final = frozenset({"dtype", "itemsize", *CASE_VARIABLES})
TENSOR_EXPRESSIONS: Final = ("count", "shape", "dtype", "strides", "offset", "shuffled", "live", "none_when")
_DOTTED: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
_TARGET: Final = re.compile(r"[a-z]+:[A-Za-z_][\w.]*$")
_RETURNS: Final = re.compile(r"None$|Tensor$|list\[Tensor\]$|tuple\[Tensor(, Tensor)*\]$|Scalar$")
_HOST_RETURNS: Final = re.compile(r"(int|float|complex|bool|str)$")
"""Of overloads that are only named."""


def read_parts(path: Path) -> tuple[Problem, tuple[Body, ...]]:
    """The problem in ``path`` and the keys of each overload; ProblemFileError or ExpressionError for a wrong key.

    What concerns several keys is left to ``problemchecks.py``.
    """
    source, name = path.parent.name, path.stem
    raw, text = read_text(path)
    if not SOURCE_NAME.match(source):
        step = f"move it to a folder named {', '.join(SOURCES)}, or as a source of your own: lower case, digits and _"
        raise ProblemFileError("KGB203", path, 1, "", f"its folder '{source}' is no source", step)
    root = read_tree(path, text)
    nodes = root.fields(KEYS["problem"], (*HEAD_KEYS, "doc"))
    check_head(nodes)
    kind = nodes["kind"].choice(KINDS)
    bodies = read_bodies(root, nodes)
    overloads = tuple(body.read(kind, source, name) for body in bodies)
    if not any(overload.required for overload in overloads):
        root.fail("KGB250", "no overload is required, so nothing would be judged", "remove one 'required: false'")
    problem = Problem(
        id=f"{source}/{name}",
        source=source,
        name=name,
        summary=one_line(nodes["summary"]),
        category=one_line(nodes["category"]),
        kind=kind,
        doc=nodes["doc"].text(),
        overloads=overloads,
        path=path,
        sha256=hashlib.sha256(raw).hexdigest(),
    )
    return problem, bodies


def read_text(path: Path) -> tuple[bytes, str]:
    """The file as it is and as text. Raises ProblemFileError."""
    try:
        raw = path.read_bytes()
        return raw, raw.decode("utf-8")
    except OSError as error:
        raise ProblemFileError("KGB208", path, 1, "", f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ProblemFileError("KGB209", path, line, "", "is not UTF-8 text", "save it as UTF-8") from None


def check_head(nodes: Mapping[str, Node]) -> None:
    first = tuple(nodes)[: len(HEAD_KEYS)]
    for found, wanted in zip(first, HEAD_KEYS, strict=True):
        if found != wanted:
            nodes[wanted].fail(
                "KGB213", "stands too late", f"begin the file with {', '.join(HEAD_KEYS)}, in this order"
            )


def one_line(node: Node) -> str:
    text = node.text()
    if node.raw.start_mark.line != node.raw.end_mark.line or getattr(node.raw, "style", None) in ("|", ">"):
        node.fail("KGB214", "expected one line of text", "kgbench list reads only the first lines of the file")
    if not text.strip():
        node.fail("KGB225", "expected text, got nothing")
    return text


def key_line(path: Path, overload: str, key: str) -> int:
    """The line at which an overload's key stands, its own before the shared one; 1 when it has none."""
    nodes = read_tree(path, path.read_text(encoding="utf-8")).mapping()
    own = nodes["overloads"].mapping()[overload].mapping() if overload else {}
    node = own.get(key, nodes.get(key))
    return 1 if node is None else node.line


# --- overloads ---


def read_bodies(root: Node, nodes: Mapping[str, Node]) -> tuple[Body, ...]:
    """One per overload, or the only one. Raises ProblemFileError."""
    shared = {key: node for key, node in nodes.items() if key in BODY_KEYS}
    if "overloads" not in nodes:
        return (Body("", root, shared, frozenset(shared)),)
    listed = nodes["overloads"].mapping()
    if not listed:
        nodes["overloads"].fail("KGB225", "expected at least one overload")
    bodies = []
    for overload, node in listed.items():
        own = node.fields(KEYS["overload"])
        bodies.append(Body(overload, node, {**shared, **own}, frozenset(own)))
    return tuple(bodies)


@dataclass(frozen=True)
class Body:
    """The keys of one overload, inherited ones included."""

    name: str
    node: Node
    nodes: dict[str, Node]
    own: frozenset[str]
    """Keys that the overload states itself."""

    def read(self, kind: str, source: str, problem: str) -> Overload:
        required, reason = self.required()
        signature = read_signature(self.need("entry"))
        self.check_entry(signature, source, problem)
        if not required and "cases" not in self.own:
            return _unjudged(self.name, reason, signature)
        if _HOST_RETURNS.match(signature.returns):
            self.need("entry").fail("KGB240", f"cannot return '{signature.returns}'", RETURNS_STEP)
        return self._read_all(signature, required, reason, kind, source, problem)

    def _read_all(
        self, signature: Signature, required: bool, reason: str, kind: str, source: str, problem: str
    ) -> Overload:
        dtypes = self.need("dtypes").fields(KEYS["dtypes"], ("required",))
        cases = self.need("cases").fields(KEYS["cases"], ("check",))
        returned_argument, returns = _returns(self.nodes.get("returns"), signature)
        tolerance = self.nodes.get("tolerance")
        if tolerance is None and kind not in ("view", "sync"):
            self.need("tolerance")
        return Overload(
            name=self.name,
            required=required,
            reason=reason,
            signature=signature,
            arguments=_arguments(self.need("arguments"), signature, "arguments" in self.own),
            variables=_derived(self.nodes.get("variables")),
            defaults={} if "defaults" not in self.nodes else _case_values(self.nodes["defaults"]),
            dtypes=_dtypes(dtypes["required"]),
            optional_dtypes=_dtypes(dtypes["optional"]) if "optional" in dtypes else (),
            check=_templates(cases["check"]),
            fuzz=_fuzz(cases["fuzz"]) if "fuzz" in cases else None,
            bench=_bench(cases["bench"]) if "bench" in cases else {},
            baseline=_baseline(self.nodes.get("baseline")) or _aten_itself(source, problem, self.name),
            fallback=None if "fallback" not in self.nodes else _dotted(self.nodes["fallback"]),
            reference=_reference(self.need("reference"), signature),
            prepare=None if "prepare" not in self.nodes else _dotted(self.nodes["prepare"]),
            tolerance=Tolerance("exact") if tolerance is None else _tolerance(tolerance),
            cost=None if "cost" not in self.nodes else _cost(self.nodes["cost"]),
            alias=None if "alias" not in self.nodes else self.nodes["alias"].text(),
            equivalent={} if "mutants" not in self.nodes else _equivalent(self.nodes["mutants"]),
            opinfo=_templates(cases["opinfo"]) if "opinfo" in cases else (),
            returned_argument=returned_argument,
            returns=returns,
            values_defined="values" not in self.nodes or _values_defined(self.nodes["values"]),
            kind=kind,
            canonical=None if "canonical" not in self.nodes else _dotted(self.nodes["canonical"]),
            needs=None if "needs" not in self.nodes else _needs(self.nodes["needs"]),
        )

    def required(self) -> tuple[bool, str]:
        required = self.nodes["required"].boolean() if "required" in self.nodes else True
        if required and "reason" in self.nodes:
            self.nodes["reason"].fail("KGB224", "stands only beside 'required: false'", "remove it")
        if not required and "reason" not in self.nodes:
            self.node.fail(
                "KGB222", "'reason' is missing beside 'required: false'", "add 'reason: …', why it is not judged"
            )
        return required, "" if required else self.nodes["reason"].text()

    def need(self, key: str) -> Node:
        if key not in self.nodes:
            self.node.fail("KGB222", f"'{key}' is missing", f"add '{key}: …'")
        return self.nodes[key]

    def check_entry(self, signature: Signature, source: str, problem: str) -> None:
        wanted = f"{problem}_{self.name}" if self.name not in ("", "default") else problem
        alone = source == "aten" and not self.name and signature.name.startswith(f"{problem}_")
        if signature.name != wanted and not alone:
            self.nodes["entry"].fail(
                "KGB241", f"the function is named '{signature.name}'", f"name it '{wanted}', as the problem is"
            )


def _unjudged(name: str, reason: str, signature: Signature) -> Overload:
    """An overload that is only named: not required, and without cases of its own."""
    return Overload(
        name=name, required=False, reason=reason, signature=signature, arguments=(), variables={}, defaults={},
        dtypes=(), optional_dtypes=(), check=(), fuzz=None, bench={}, baseline={}, fallback=None, reference="",
        prepare=None, tolerance=Tolerance("exact"), cost=None, alias=None, equivalent={},
    )  # fmt: skip


# --- single keys ---


def read_signature(node: Node) -> Signature:
    text = node.text()
    step = "write name(x: Tensor, n: int, *, alpha: Scalar = 1) -> Tensor"
    try:
        function = syntax.parse(f"def {text}: ...").body[0]
    except SyntaxError as error:
        node.fail("KGB240", f"is no signature: {error.msg}", step)
    if not isinstance(function, ast.FunctionDef) or function.returns is None:
        node.fail("KGB240", "the signature has no return type", step)
    arguments = function.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        node.fail("KGB240", "a signature has no *args, **kwargs or '/'", step)
    absent = [None] * (len(arguments.args) - len(arguments.defaults))
    positional = zip(arguments.args, [*absent, *arguments.defaults], strict=True)
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    parameters = [_parameter(node, each, default, keyword_only=False) for each, default in positional]
    parameters += [_parameter(node, each, default, keyword_only=True) for each, default in keyword]
    returns = ast.unparse(function.returns)
    if not _RETURNS.match(returns) and not _HOST_RETURNS.match(returns):
        node.fail("KGB240", f"cannot return '{returns}'", RETURNS_STEP)
    return Signature(function.name, tuple(parameters), returns, text)


def _parameter(node: Node, argument: ast.arg, default: ast.expr | None, *, keyword_only: bool) -> Parameter:
    written = _type(node, argument)
    if default is None:
        return Parameter(argument.arg, written, keyword_only)
    try:
        value = ast.literal_eval(default)
    except ValueError:
        node.fail(
            "KGB240",
            f"parameter '{argument.arg}' has the default '{ast.unparse(default)}'",
            "a default is a number, a text, True, False, None or a list of such",
        )
    return Parameter(argument.arg, written, keyword_only, tuple(value) if isinstance(value, list) else value, True)


def _type(node: Node, argument: ast.arg) -> str:
    if argument.annotation is None:
        node.fail(
            "KGB240",
            f"parameter '{argument.arg}' has no type",
            f"write '{argument.arg}: Tensor', or one of {', '.join(TYPES)}",
        )
    written = ast.unparse(argument.annotation)
    if plain_type(written) not in TYPES:
        node.fail(
            "KGB240",
            f"parameter '{argument.arg}' has the unknown type '{written}'",
            f"there are {', '.join(TYPES)}, each with | None",
        )
    return written


def plain_type(written: str) -> str:
    """A parameter's type without ``| None`` around it."""
    return written.removesuffix(" | None")


def takes_tensors(parameter: Parameter) -> bool:
    """A tensor or a list of them."""
    return plain_type(parameter.type) in ("Tensor", *TENSOR_LISTS)


def call_names(overload: Overload) -> frozenset[str]:
    """The variables that a case has because it is a call."""
    names = set(CALL_VARIABLES)
    for parameter in overload.signature.parameters:
        parts = ("_shape", "_strides", "_dtype") if takes_tensors(parameter) else ("",)
        names |= {f"{parameter.name}{part}" for part in parts}
    return frozenset(names)


def _arguments(node: Node, signature: Signature, own: bool = True) -> tuple[Argument, ...]:
    """One per parameter. What the file says for all overloads, not ``own``, may name parameters of others."""
    names = [parameter.name for parameter in signature.parameters]
    found = node.mapping()
    for name, child in found.items() if own else ():
        if name not in names:
            child.fail("KGB233", f"entry has no parameter '{name}'", did_you_mean(name, names))
    for parameter in signature.parameters:
        if parameter.name not in found and not _may_be_left_out(parameter):
            shape = "{access: read, shape: …, draw: …}" if parameter.type.startswith("Tensor") else "{value: …}"
            node.fail(
                "KGB242", f"parameter '{parameter.name}' of entry has no argument", f"add '{parameter.name}: {shape}'"
            )
    return tuple(
        _argument(parameter, found[parameter.name])
        if parameter.name in found
        else ScalarArgument(parameter.name, Expr.parse(repr(parameter.default), node.where), is_default=True)
        for parameter in signature.parameters
    )


def _may_be_left_out(parameter: Parameter) -> bool:
    """A plain value that a case's call gives, or that is the entry's default."""
    return not takes_tensors(parameter) or (parameter.has_default and parameter.default is None)


def _argument(parameter: Parameter, node: Node) -> Argument:
    optional = parameter.type.endswith("| None")
    if not takes_tensors(parameter) or (optional and "value" in node.mapping()):
        if "shape" in node.mapping():
            node.fail(
                "KGB243", f"has a shape, and entry says it is {parameter.type}", "write {value: …}, or change entry"
            )
        return ScalarArgument(parameter.name, node.fields(KEYS["scalar"], KEYS["scalar"])["value"].expr())
    if "value" in node.mapping():
        node.fail(
            "KGB243", "has a value, and entry says it is a Tensor", "write {access: …, shape: …}, or change entry"
        )
    fields = node.fields(KEYS["tensor"], ("access",))
    if "count" in fields and plain_type(parameter.type) not in TENSOR_LISTS:
        fields["count"].fail("KGB243", f"entry says {parameter.type}", f"write '{parameter.name}: list[Tensor]' there")
    if "none_when" in fields and not optional:
        fields["none_when"].fail(
            "KGB243", f"entry says {parameter.type}", f"write '{parameter.name}: Tensor | None' there"
        )
    access = fields["access"].choice(ACCESSES)
    if access == "write" and "draw" in fields:
        fields["draw"].fail(
            "KGB224", "a 'write' argument has no values before the call", "remove it, or write access: readwrite"
        )
    if access != "write" and "draw" not in fields:
        node.fail("KGB222", "'draw' is missing", "add 'draw: normal()', or what its values are")
    passed = fields["passed"].choice(WAYS_TO_PASS) if "passed" in fields else "view"
    if "shuffled" in fields and passed != "pointers":
        fields["shuffled"].fail("KGB224", "belongs to 'passed: pointers'", "remove it")
    if "device" in fields:
        fields["device"].choice(("cpu",))
        for key in ("strides", "offset", "passed", "live"):
            if key in fields:
                fields[key].fail("KGB224", "a tensor on the host is row-major and whole", "remove it")
        if access != "read":
            fields["device"].fail("KGB224", "a tensor on the host is read only", "write access: read")
    parsed = {key: fields[key].expr() for key in TENSOR_EXPRESSIONS if key in fields}
    return TensorArgument(
        name=parameter.name,
        access=access,
        shape=parsed.get("shape"),
        dtype=parsed.get("dtype", Expr.parse("dtype", node.where)),
        strides=parsed.get("strides"),
        offset=parsed.get("offset"),
        passed=passed,
        live=parsed.get("live"),
        draw=_draws(fields["draw"]) if "draw" in fields else {},
        none_when=parsed.get("none_when"),
        shuffled=parsed.get("shuffled"),
        count=parsed.get("count"),
        host="device" in fields,
    )


def _draws(node: Node) -> dict[str, Draw]:
    if not node.is_mapping():
        return {"default": _draw(node)}
    found = {name: _draw(child) for name, child in node.mapping().items()}
    if "default" not in found:
        node.fail("KGB222", "'default' is missing", "add 'default: normal()', for cases that name no values")
    return found


def _draw(node: Node) -> Draw:
    text = node.text()
    try:
        call = syntax.parse(text.strip(), mode="eval").body
    except SyntaxError:
        call = ast.Constant(None)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        node.fail("KGB244", f"'{text}' does not say how values are drawn", "write normal(), integers(-8, 8), …")
    if call.func.id not in DRAWS:
        node.fail("KGB232", f"nothing is drawn by '{call.func.id}'", did_you_mean(call.func.id, DRAWS))
    fewest, most = DRAWS[call.func.id]
    if call.keywords or not fewest <= len(call.args) <= most:
        count = str(fewest) if fewest == most else f"{fewest} to {most}"
        node.fail("KGB244", f"'{call.func.id}' takes {count} arguments by position, got '{text}'")
    return Draw(call.func.id, tuple(Expr.parse(ast.unparse(each), node.where) for each in call.args))


def _derived(node: Node | None) -> dict[str, Expr]:
    if node is None:
        return {}
    found = {name: child.expr() for name, child in node.mapping().items()}
    for name, child in node.mapping().items():
        _check_variable_name(name, child)
        if name in ALWAYS:
            child.fail("KGB245", f"'{name}' is set by the case and cannot be derived", "take another name")
    return found


def _case_values(node: Node) -> dict[str, Any]:
    values = {name: child.value() for name, child in node.mapping().items()}
    for name, child in node.mapping().items():
        _check_variable_name(name, child)
        if name == "dtype":
            child.choice(tuple(ITEMSIZE))
        if name == "values":
            child.text()
        if name in ("exact", "unjudged", "late"):
            child.boolean()
        if name == "call":
            _check_call(child)
        if name == "lazy":
            child.choice(LAZY)
    return values


def _check_call(node: Node) -> None:
    """The text of a call, as far as it can be read before its ``$names`` have values."""
    text = node.text()
    try:
        if not placeholders(text):
            parse_call(text)
    except TraceError as error:
        node.fail("KGB257", f"is no call: {error}", "write ((T([5, 3], f32), 1), {'dim': 0})")


def _check_variable_name(name: str, node: Node) -> None:
    if not name.isidentifier() or name in CONSTANTS or name in ("itemsize", "torch"):
        node.fail("KGB245", f"'{name}' cannot be a variable", "it is no name, or a name that is taken")


def _dtypes(node: Node) -> tuple[str, ...]:
    return tuple(child.choice(tuple(ITEMSIZE)) for child in node.sequence())


def _templates(node: Node) -> tuple[CaseTemplate, ...]:
    """Cases as mappings; a bare text is a call."""
    found = []
    for child in node.sequence():
        if child.is_text():
            _check_call(child)
            found.append(CaseTemplate({"call": child.text()}, child.line))
        else:
            found.append(CaseTemplate(_case_values(child), child.line))
    return tuple(found)


def _read_cases(node: Node) -> None:
    """Every key of it, for complaints about each."""
    fields = node.fields(KEYS["cases"], ("check",))
    readers: dict[str, Callable[[Node], object]] = {
        "check": _templates, "opinfo": _templates, "fuzz": _fuzz, "bench": _bench
    }  # fmt: skip
    for key, child in fields.items():
        readers[key](child)


def _fuzz(node: Node) -> Fuzz:
    fields = node.fields(KEYS["fuzz"], ("count", "draw"))
    if "call" in fields:
        _check_call(fields["call"])
    draw = {name: _drawn(child) for name, child in fields["draw"].mapping().items()}
    for name, child in fields["draw"].mapping().items():
        _check_variable_name(name, child)
    dtypes = _dtypes(fields["dtypes"]) if "dtypes" in fields else ()
    if dtypes and "dtype" in draw:
        fields["dtypes"].fail("KGB224", "'draw' has a dtype too", "keep one")
    return Fuzz(fields["count"].integer(), draw, dtypes, fields["call"].text() if "call" in fields else "")


def _drawn(node: Node) -> Any:
    if not node.is_mapping():
        return node.value()
    fields = node.fields(KEYS["drawn"])
    if len(fields) != 1:
        node.fail("KGB246", "expected 'range' or 'choice'", "write {range: [1, 64]} or {choice: [a, b]}")
    if "choice" in fields:
        choice = tuple(child.value() for child in fields["choice"].sequence())
        if not choice:
            fields["choice"].fail("KGB225", "expected at least one value")
        return {"choice": choice}
    bounds = [child.integer() for child in fields["range"].sequence()]
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        fields["range"].fail("KGB246", f"expected the lowest and the highest value, got {bounds}", "write [1, 64]")
    return {"range": tuple(bounds)}


def _bench(node: Node) -> dict[str, tuple[CaseTemplate, ...]]:
    found = {preset: (child, _templates(child)) for preset, child in node.fields(KEYS["bench"]).items()}
    for child, templates in found.values():
        if not templates:
            child.fail("KGB225", "expected at least one case", "remove the preset, or give it cases")
    return {preset: templates for preset, (_, templates) in found.items()}


def _baseline(node: Node | None) -> dict[str, str]:
    if node is None:
        return {}
    targets = {device: child.text() for device, child in node.fields(KEYS["baseline"]).items()}
    for device, child in node.mapping().items():
        if not _TARGET.match(targets[device]) and not _DOTTED.match(targets[device]):
            step = "write library:name, such as aten:add.Tensor, or package.module:function"
            child.fail("KGB247", f"'{targets[device]}' names no library call", step)
    return targets


def _dotted(node: Node) -> str:
    text = node.text()
    if not _DOTTED.match(text):
        node.fail("KGB247", f"'{text}' is no path of a function", "write package.module:function")
    return text


def _reference(node: Node, signature: Signature) -> str:
    """A dotted path, the text of ``def reference(…)``, or an expression over the parameters."""
    text = node.text()
    names = {parameter.name for parameter in signature.parameters}
    if _DOTTED.match(text):
        return text
    if not text.lstrip().startswith("def "):
        unknown = sorted(reference_names(text, node.where) - names)
        if unknown:
            node.fail("KGB233", f"entry has no parameter '{unknown[0]}'", did_you_mean(unknown[0], sorted(names)))
        return text
    try:
        body = syntax.parse(text).body
    except SyntaxError as error:
        node.fail("KGB248", f"is not Python: line {error.lineno} of it: {error.msg}")
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef) or body[0].name != "reference":
        node.fail(
            "KGB248", "expected one function named 'reference'", f"write def reference({', '.join(sorted(names))}): …"
        )
    taken = body[0].args
    missing = names - {each.arg for each in (*taken.args, *taken.kwonlyargs)}
    if missing and not taken.kwarg:
        node.fail(
            "KGB248", f"the function does not take '{sorted(missing)[0]}'", "it gets every parameter of entry by name"
        )
    return text


def _returns(node: Node | None, signature: Signature) -> tuple[str, tuple[Returned, ...]]:
    """The name of the argument that is returned, or what is promised of each returned tensor."""
    if node is None:
        return "", ()
    if node.is_text():
        names = [parameter.name for parameter in signature.parameters]
        if node.text() not in names:
            node.fail("KGB233", f"entry has no parameter '{node.text()}'", did_you_mean(node.text(), names))
        if signature.returns != "Tensor":
            node.fail("KGB243", f"entry returns {signature.returns}", "let it return Tensor")
        return node.text(), ()
    return "", tuple(_returned(child) for child in node.sequence())


def _returned(node: Node) -> Returned:
    fields = node.fields(KEYS["returns"])
    as_aten = "strides" in fields and fields["strides"].is_text() and fields["strides"].text() == "aten"
    parsed = {key: child.expr() for key, child in fields.items() if not (key == "strides" and as_aten)}
    return Returned(parsed.get("dtype"), parsed.get("shape"), parsed.get("strides"), as_aten)


def _values_defined(node: Node) -> bool:
    return node.choice(("defined", "undefined")) == "defined"


def _aten_itself(source: str, problem: str, overload: str) -> dict[str, str]:
    """An ATen problem is compared with its own overload where it says nothing else."""
    if source != "aten":
        return {}
    target = f"aten:{problem}" if overload in ("", "default") else f"aten:{problem}.{overload}"
    return {"cuda": target, "cpu": target}


def _tolerance(node: Node) -> Tolerance:
    fields = node.fields(KEYS["tolerance"], ("rule",))
    rule = fields["rule"].choice(RULES)
    if rule == "accumulate" and "length" not in fields:
        node.fail("KGB222", "'length' is missing", "add 'length: …', the number of terms summed for one output element")
    for key, owners in (("length", ("accumulate",)), ("ulps", ("rounding", "quantize"))):
        if key in fields and rule not in owners:
            owner = "' or '".join(owners)
            fields[key].fail("KGB224", f"belongs to rule '{owner}', and the rule is '{rule}'", "remove it")
    ulps = fields["ulps"].number() if "ulps" in fields else 4.0
    if ulps <= 0:
        fields["ulps"].fail("KGB249", f"expected more than 0, got {ulps}", "write rule: exact for equality")
    length = fields["length"].expr() if "length" in fields else None
    return Tolerance(rule, length, float(ulps), fields["compute"].expr() if "compute" in fields else None)


def _cost(node: Node) -> Cost:
    fields = node.fields(KEYS["cost"], KEYS["cost"])
    return Cost(fields["flops"].expr(), fields["bytes"].expr())


def _equivalent(node: Node) -> dict[str, str]:
    """Reasons by the mutants' names."""
    fields = node.fields(KEYS["mutants"], KEYS["mutants"])
    reasons = {}
    for name, child in fields["equivalent"].mapping().items():
        if name not in MUTANTS:
            child.fail("KGB232", f"there is no mutant '{name}'", did_you_mean(name, MUTANTS))
        if not child.text().strip():
            child.fail("KGB225", "expected the reason why this mutant answers right")
        reasons[name] = child.text()
    return reasons


def _needs(node: Node) -> Needs:
    fields = node.fields(KEYS["needs"], ("capability",))
    given = fields["capability"].value()
    bounds = given if isinstance(given, tuple) else (given, None)
    plain = all(isinstance(each, int) and each > 0 for each in bounds if each is not None)
    if len(bounds) != 2 or not plain or (bounds[1] is not None and bounds[0] > bounds[1]):
        fields["capability"].fail(
            "KGB230", f"expected a compute capability or two, got {given}", "write 90, or [75, 89]"
        )
    return Needs(*bounds, fields["reason"].text() if "reason" in fields else "")


RETURNS_STEP: Final = "return None, Tensor, tuple[Tensor, Tensor], list[Tensor] or Scalar"

READERS: Final[dict[str, Callable[[Node], object]]] = {
    "dtypes": lambda node: [_dtypes(each) for each in node.fields(KEYS["dtypes"], ("required",)).values()],
    "defaults": _case_values,
    "variables": _derived,
    "cases": _read_cases,
    "values": _values_defined,
    "baseline": _baseline,
    "fallback": _dotted,
    "prepare": _dotted,
    "tolerance": _tolerance,
    "cost": _cost,
    "alias": Node.text,
    "mutants": _equivalent,
    "canonical": _dotted,
    "needs": _needs,
}
"""What reads each key of the body that can be read without ``entry``."""

READERS_WITH_ENTRY: Final[dict[str, Callable[[Node, Signature, bool], object]]] = {
    "arguments": _arguments,
    "reference": lambda node, signature, own: _reference(node, signature),
    "returns": lambda node, signature, own: _returns(node, signature),
}
