"""The entry of a problem file: a typed Python signature."""

from __future__ import annotations

import ast
import re
from typing import Final

from kgbench.core import syntax
from kgbench.problem.model import Parameter, Signature, plain_type
from kgbench.problem.yamltree import Node

TYPES: Final = (
    "Tensor", "int", "float", "complex", "bool", "str", "dtype", "Scalar", "layout", "device", "memory_format",
    "Generator", "list[Tensor]", "list[Tensor | None]", "list[int]", "list[float]", "list[bool]",
)  # fmt: skip
RETURNS_STEP: Final = "return None, Tensor, tuple[Tensor, Tensor], list[Tensor] or Scalar"

_RETURNS: Final = re.compile(r"None$|Tensor$|list\[Tensor\]$|tuple\[Tensor(, Tensor)*\]$|Scalar$")
_HOST_RETURNS: Final = re.compile(r"(int|float|complex|bool|str)$")
"""Matches return types that only an overload which is not judged may have."""
_STEP: Final = "write name(x: Tensor, n: int, *, alpha: Scalar = 1) -> Tensor"


def read_signature(node: Node) -> Signature:
    """Parses the key ``entry``. Raises Complaint when it is not a valid signature."""
    text = node.text()
    try:
        function = syntax.parse(f"def {text}: ...").body[0]
    except SyntaxError as error:
        node.fail("KGB240", f"is no signature: {error.msg}", _STEP)
    if not isinstance(function, ast.FunctionDef) or function.returns is None:
        node.fail("KGB240", "the signature has no return type", _STEP)
    arguments = function.args
    if arguments.vararg or arguments.kwarg or arguments.posonlyargs:
        node.fail("KGB240", "a signature has no *args, **kwargs or '/'", _STEP)
    absent = [None] * (len(arguments.args) - len(arguments.defaults))
    positional = zip(arguments.args, [*absent, *arguments.defaults], strict=True)
    keyword = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    parameters = [_parameter(node, each, default, keyword_only=False) for each, default in positional]
    parameters += [_parameter(node, each, default, keyword_only=True) for each, default in keyword]
    returns = ast.unparse(function.returns)
    if not _RETURNS.match(returns) and not returns_to_host(returns):
        node.fail("KGB240", f"cannot return '{returns}'", RETURNS_STEP)
    return Signature(function.name, tuple(parameters), returns, text)


def returns_to_host(returns: str) -> bool:
    """Whether a return type is a plain Python type. Only an overload that is not judged may have one."""
    return bool(_HOST_RETURNS.match(returns))


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
        step = f"write '{argument.arg}: Tensor', or one of {', '.join(TYPES)}"
        node.fail("KGB240", f"parameter '{argument.arg}' has no type", step)
    written = ast.unparse(argument.annotation)
    if plain_type(written) not in TYPES:
        what = f"parameter '{argument.arg}' has the unknown type '{written}'"
        node.fail("KGB240", what, f"there are {', '.join(TYPES)}, each with | None")
    return written
