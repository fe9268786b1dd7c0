"""Single values of a problem file: how each is read, and its JSON Schema for editors."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic_core import CoreSchema, core_schema

from kgbench.core import syntax
from kgbench.core.kinds import Kind
from kgbench.core.names import did_you_mean
from kgbench.problem.calls import ParsedCall, TraceError, parse
from kgbench.problem.expressions import CONSTANTS, ITEMSIZE, Expr
from kgbench.problem.format.signature import read_signature
from kgbench.problem.model import (
    ALWAYS,
    LAZY,
    RULES,
    Access,
    CaseTemplate,
    Draw,
    Needs,
    PassedAs,
    Signature,
)
from kgbench.problem.mutants import MUTANTS
from kgbench.problem.yamltree import Node, each, node_of

DRAWS: Final[dict[str, tuple[int, int]]] = {
    "normal": (0, 2), "uniform": (0, 2), "magnitudes": (2, 2), "integers": (2, 2), "odd_integers": (1, 1),
    "signs": (0, 0), "full": (1, 1), "zeros": (0, 0), "distinct": (1, 1), "permutation": (0, 0), "special": (0, 1),
    "dominant": (0, 0), "arange": (0, 1), "choice": (1, 1), "listed": (1, 1), "few": (1, 2), "outer": (2, 3),
}  # fmt: skip
"""Minimum and maximum number of arguments of each draw; ``harness/verdict/draws.py`` has the functions."""

NONE: Final = "none"
"""Value of ``baseline`` and ``fallback`` for none, where the problem's name would otherwise give one."""

DOTTED: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
_TARGET: Final = re.compile(r"[a-z]+:[A-Za-z_][\w.]*$")


@dataclass(frozen=True, eq=False)
class Leaf:
    """Reads a value whose inside pydantic does not check. Raises Complaint."""

    read: Callable[[Node], Any]
    schema: dict[str, Any]
    """The key's JSON Schema."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(lambda datum: self.read(node_of(datum)))

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        return dict(self.schema)


# --- readers ---


def _choice(known: tuple[str, ...]) -> Leaf:
    return Leaf(lambda node: node.choice(known), {"enum": list(known)})


def _member(known: type[StrEnum]) -> Leaf:
    return Leaf(lambda node: known(node.choice(tuple(known))), {"enum": [str(each) for each in known]})


def _one_line(node: Node) -> str:
    text = node.text()
    if node.raw.start_mark.line != node.raw.end_mark.line or getattr(node.raw, "style", None) in ("|", ">"):
        node.fail("KGB214", "expected one line of text", "kgbench list reads only the first lines of the file")
    if not text.strip():
        node.fail("KGB225", "expected text, got nothing")
    return text


def read_draw(node: Node) -> Draw:
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
    return Draw(call.func.id, tuple(node.expr(ast.unparse(argument)) for argument in call.args))


def _read_draws(node: Node) -> dict[str, Draw]:
    if not node.is_mapping():
        return {"default": read_draw(node)}
    children = node.mapping()
    draws = dict(zip(children, each(read_draw, children.values()), strict=True))
    if "default" not in draws:
        node.fail("KGB222", "'default' is missing", "add 'default: normal()', for cases that name no values")
    return draws


def _read_derived(node: Node) -> dict[str, Expr]:
    def read(child: Node) -> Expr:
        _check_variable_name(child)
        if child.name in ALWAYS:
            child.fail("KGB245", f"'{child.name}' is set by the case and cannot be derived", "take another name")
        return child.expr()

    children = node.mapping()
    return dict(zip(children, each(read, children.values()), strict=True))


def _read_values(node: Node) -> dict[str, Any]:
    children = node.mapping()
    return dict(zip(children, each(_read_variable, children.values()), strict=True))


def _read_variable(node: Node) -> Any:
    """A case's variable; those with a fixed meaning accept only certain values."""
    _check_variable_name(node)
    known: dict[str, Callable[[Node], Any]] = {
        "dtype": lambda node: node.choice(tuple(ITEMSIZE)), "values": Node.text, "exact": Node.boolean,
        "unjudged": Node.boolean, "late": Node.boolean, "call": read_call, "lazy": lambda node: node.choice(LAZY),
    }  # fmt: skip
    return known.get(node.name, Node.value)(node)


def read_call(node: Node) -> ParsedCall:
    try:
        return parse(node.text())
    except TraceError as error:
        node.fail("KGB257", f"is no call: {error}", "write ((T([5, 3], f32), 1), {'dim': 0})")


def _check_variable_name(node: Node) -> None:
    if not node.name.isidentifier() or node.name in CONSTANTS or node.name in ("itemsize", "torch"):
        node.fail("KGB245", f"'{node.name}' cannot be a variable", "it is no name, or a name that is taken")


def _read_template(node: Node) -> CaseTemplate:
    """A case is a mapping; a text alone is its call."""
    if node.is_text():
        return CaseTemplate({}, node.line, read_call(node))
    variables = _read_values(node)
    call = variables.pop("call", None)
    return CaseTemplate(variables, node.line, call)


def _read_defaults(node: Node) -> dict[str, Any]:
    if "call" in (children := node.mapping()):
        children["call"].fail("KGB245", "'call' has no default", "write the call in each case")
    return _read_values(node)


def _read_target(node: Node) -> str:
    text = node.text()
    if not _TARGET.match(text) and not DOTTED.match(text):
        step = "write library:name, such as aten:add.Tensor, or package.module:function"
        node.fail("KGB247", f"'{text}' names no library call", step)
    return text


def _read_function(node: Node) -> str:
    text = node.text()
    if not DOTTED.match(text):
        node.fail("KGB247", f"'{text}' is no path of a function", "write package.module:function")
    return text


def _read_function_or_none(node: Node) -> str:
    return node.text() if node.is_text() and node.text() == NONE else _read_function(node)


def _read_none(node: Node) -> str:
    if not node.is_text() or node.text() != NONE:
        step = f"write {{cuda: …, cpu: …}}, or {NONE} where there is no library"
        node.fail("KGB230", f"expected keys with values, got {node.kind_and_text()}", step)
    return NONE


def _read_strides(node: Node) -> Expr | str:
    return "aten" if node.is_text() and node.text() == "aten" else node.expr()


def _read_constant(node: Node) -> Any:
    _check_variable_name(node)
    return node.value()


def _read_range(node: Node) -> tuple[int, ...]:
    bounds = tuple(each(Node.integer, node.sequence()))
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        node.fail("KGB246", f"expected the lowest and the highest value, got {list(bounds)}", "write [1, 64]")
    return bounds


def _read_choices(node: Node) -> tuple[Any, ...]:
    values = tuple(each(Node.value, node.sequence()))
    if not values:
        node.fail("KGB225", "expected at least one value")
    return values


def _read_ulps(node: Node) -> float:
    ulps = node.number()
    if ulps <= 0:
        node.fail("KGB249", f"expected more than 0, got {ulps}", "write rule: exact for equality")
    return float(ulps)


def _read_reasons(node: Node) -> dict[str, str]:
    def read(child: Node) -> str:
        if child.name not in MUTANTS:
            child.fail("KGB232", f"there is no mutant '{child.name}'", did_you_mean(child.name, MUTANTS))
        if not child.text().strip():
            child.fail("KGB225", "expected the reason why this mutant is correct")
        return child.text()

    children = node.mapping()
    return dict(zip(children, each(read, children.values()), strict=True))


def _read_capability(node: Node) -> Needs:
    given = node.value()
    bounds = given if isinstance(given, tuple) else (given, None)
    plain = all(isinstance(bound, int) and bound > 0 for bound in bounds if bound is not None)
    if len(bounds) != 2 or not plain or (bounds[1] is not None and bounds[0] > bounds[1]):
        node.fail("KGB230", f"expected a compute capability or two, got {given}", "write 90, or [75, 89]")
    return Needs(*bounds)


def _read_reference(node: Node) -> str:
    """A function's path, the text of ``def reference(…)``, or an expression, whose names are checked elsewhere."""
    text = node.text()
    if not text.lstrip().startswith("def "):
        return text
    try:
        body = syntax.parse(text).body
    except SyntaxError as error:
        node.fail("KGB248", f"is not Python: line {error.lineno} of it: {error.msg}")
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef) or body[0].name != "reference":
        node.fail("KGB248", "expected one function named 'reference'", "write def reference(…) with entry's parameters")
    return text


# --- types ---

DEFINITIONS: Final[dict[str, Any]] = {
    "value": {"type": ["string", "number", "boolean", "null", "array"]},
    "dtype": {"enum": list(ITEMSIZE)},
    "draw": {"type": "string", "pattern": rf"^\s*({'|'.join(DRAWS)})\("},
    "function": {"type": "string", "pattern": "^.+:.+$"},
    "case": {
        "type": "object",
        "properties": {
            "dtype": {"definition": "dtype"}, "values": {"type": "string"}, "exact": {"type": "boolean"},
            "unjudged": {"type": "boolean"}, "call": {"type": "string"}, "lazy": {"enum": list(LAZY)},
            "late": {"type": "boolean"},
        },
        "additionalProperties": {"definition": "value"},
    },
}  # fmt: skip
"""Parts of the JSON Schema that are used several times, each as ``{"definition": NAME}``."""
_TEXT: Final = {"type": "string"}
_VALUE, _DTYPE, _DRAW, _FUNCTION, _CASE = ({"definition": name} for name in DEFINITIONS)

Text = Annotated[str, Leaf(Node.text, _TEXT)]
Line = Annotated[str, Leaf(_one_line, {"type": "string", "pattern": r"^.*\S.*$"})]
Boolean = Annotated[bool, Leaf(Node.boolean, {"type": "boolean"})]
Whole = Annotated[int, Leaf(Node.integer, {"type": "integer"})]
Expression = Annotated[Expr, Leaf(Node.expr, _VALUE)]
Strides = Annotated[Expr | str, Leaf(_read_strides, {"type": ["string", "array"]})]
ProblemKind = Annotated[Kind, _member(Kind)]
Rule = Annotated[str, _choice(RULES)]
TensorAccess = Annotated[Access, _member(Access)]
Passed = Annotated[PassedAs, _member(PassedAs)]
Host = Annotated[str, _choice(("cpu",))]
Defined = Annotated[str, _choice(("defined", "undefined"))]
Subnormals = Annotated[str, _choice(("kept", "zero"))]
Dtype = Annotated[str, Leaf(lambda node: node.choice(tuple(ITEMSIZE)), _DTYPE)]
Entry = Annotated[Signature, Leaf(read_signature, {"type": "string", "pattern": r"^\w+\(.*\) *-> *\S"})]
DrawText = Annotated[Draw, Leaf(read_draw, _DRAW)]
_SETS: Final = {"type": "object", "additionalProperties": _DRAW, "required": ["default"]}
Draws = Annotated[dict[str, Draw], Leaf(_read_draws, {"anyOf": [_DRAW, _SETS]})]
Derived = Annotated[dict[str, Expr], Leaf(_read_derived, {"type": "object", "additionalProperties": _VALUE})]
Defaults = Annotated[dict[str, Any], Leaf(_read_defaults, _CASE)]
Template = Annotated[CaseTemplate, Leaf(_read_template, {"anyOf": [_TEXT, _CASE]})]
Call = Annotated[ParsedCall, Leaf(read_call, _TEXT)]
Constant = Annotated[Any, Leaf(_read_constant, _VALUE)]
Range = Annotated[
    tuple[int, ...], Leaf(_read_range, {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2})
]
Choices = Annotated[tuple[Any, ...], Leaf(_read_choices, {"type": "array", "items": _VALUE, "minItems": 1})]
Target = Annotated[str, Leaf(_read_target, _FUNCTION)]
Function = Annotated[str, Leaf(_read_function, _FUNCTION)]
FunctionOrNone = Annotated[str, Leaf(_read_function_or_none, {"type": "string", "pattern": f"^(.+:.+|{NONE})$"})]
NoLibrary = Annotated[str, Leaf(_read_none, {"const": NONE})]
Ulps = Annotated[float, Leaf(_read_ulps, {"type": "number", "exclusiveMinimum": 0})]
Reasons = Annotated[
    dict[str, str], Leaf(_read_reasons, {"type": "object", "propertyNames": {"enum": list(MUTANTS)},
                                         "additionalProperties": _TEXT})
]  # fmt: skip
Capability = Annotated[
    Needs,
    Leaf(_read_capability, {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "integer"}}]}),
]
Reference = Annotated[str, Leaf(_read_reference, _TEXT)]
