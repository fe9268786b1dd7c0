"""Expressions of problem files, evaluated by walking their syntax tree. Never ``eval``.

The walker knows arithmetic, comparisons, tuples, subscripts and a short list of functions, and refuses everything else.
It passes values through unchanged, so it serves sizes (ints) and masks (tensors). Reference expressions may also call
functions of the torch module that is passed in; this module imports no torch.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from kgbench.core import syntax
from kgbench.core.errors import ExpressionError
from kgbench.problem.file_place import FilePlace, expression_error

MAX_TEXT: Final = 2000
"""Maximum length of an expression, in characters."""
MAX_BITS: Final = 4096
"""Maximum number of bits of a product or a power of whole numbers."""
MAX_SEQUENCE: Final = 4096
"""Maximum number of elements of a repeated sequence."""

ITEMSIZE: Final[dict[str, int]] = {
    "bool": 1, "uint8": 1, "int8": 1, "float8_e4m3fn": 1, "float8_e5m2": 1,
    "int16": 2, "uint16": 2, "float16": 2, "bfloat16": 2,
    "int32": 4, "uint32": 4, "float32": 4, "complex32": 4,
    "int64": 8, "uint64": 8, "float64": 8, "complex64": 8, "complex128": 16,
}  # fmt: skip
"""Size of one element in bytes, by dtype name."""

CONSTANTS: Final[dict[str, Any]] = {
    **{name: name for name in ITEMSIZE},
    "nan": math.nan,
    "inf": math.inf,
    "pi": math.pi,
}


def _ceil_div(a: Any, b: Any) -> Any:
    return -(-a // b)


def _round_up(a: Any, multiple: Any) -> Any:
    return -(-a // multiple) * multiple


def _distinct(of: Any, drawn: Any) -> float:
    """How many of ``of`` things are expected to be named where ``drawn`` are drawn evenly, each as if alone."""
    return of * -math.expm1(drawn * math.log1p(-1 / of)) if of > 1 else float(min(of, drawn))


def _itemsize(dtype: str) -> int:
    if dtype not in ITEMSIZE:
        raise ValueError(f"'{dtype}' is no dtype")
    return ITEMSIZE[dtype]


def _broadcast(*shapes: Any) -> tuple[int, ...]:
    """The shape to which these broadcast, as in NumPy; None and numbers count as a shape without dimensions."""
    found = [tuple(shape) if isinstance(shape, (tuple, list)) else () for shape in shapes]
    rank = max((len(shape) for shape in found), default=0)
    sizes = []
    for column in zip(*((1,) * (rank - len(shape)) + shape for shape in found), strict=True):
        wanted = {size for size in column if size != 1}
        if len(wanted) > 1:
            raise ValueError(f"{', '.join(map(str, found))} do not broadcast")
        sizes.append(wanted.pop() if wanted else 1)
    return tuple(sizes)


def _reduced(shape: Any, dims: Any, keepdim: Any = False) -> tuple[int, ...]:
    """The shape after a reduction over ``dims``: one, several, or all dimensions if it is None or empty."""
    rank = len(shape)
    listed = range(rank) if dims is None or dims == () or dims == [] else dims
    gone = {dim % max(rank, 1) for dim in ((listed,) if isinstance(listed, int) else listed)}
    return tuple(1 if at in gone else size for at, size in enumerate(shape) if keepdim or at not in gone)


_KINDS: Final = {"bool": 0, "uint8": 1, "int8": 1, "int16": 1, "int32": 1, "int64": 1}


def _result_type(*dtypes: Any) -> str:
    """The dtype to which tensors with dimensions of these dtypes promote (torch.promote_types); None is ignored."""
    known = [each for each in dtypes if each is not None]
    kind = max(_KINDS.get(each, 3 if each.startswith("complex") else 2) for each in known)
    high = [each for each in known if _KINDS.get(each, 3 if each.startswith("complex") else 2) == kind]
    if kind == 3:
        real = [each for each in known if each.startswith(("float", "bfloat"))]
        bytes_needed = max([_itemsize(each) for each in high] + [2 * _itemsize(each) for each in real])
        return f"complex{8 * bytes_needed}"
    if len(set(high)) == 1:
        return str(high[0])
    if kind == 2:
        both = set(high) == {"float16", "bfloat16"}
        return "float32" if both else str(max(high, key=_itemsize))
    if "uint8" in high:
        signed = max((each for each in high if each != "uint8"), key=_itemsize)
        return "int16" if signed == "int8" else str(signed)
    return str(max(high, key=_itemsize))


def _op(trans: Any, rows: Any, columns: Any) -> tuple[Any, Any]:
    """The shape in which BLAS stores a matrix of which op(A) is (rows, columns)."""
    return (rows, columns) if trans == "N" else (columns, rows)


def _triangle(uplo: Any, diag: Any, row: Any, column: Any) -> Any:
    """Whether BLAS reads the element: it is in the triangle, without the diagonal if ``diag`` is U."""
    if uplo == "L":
        return row > column if diag == "U" else row >= column
    return row < column if diag == "U" else row <= column


def _compute_dtype(dtype: Any) -> str:
    """The dtype itself if arithmetic may use it, else float32."""
    return dtype if dtype in ("float16", "bfloat16", "float64") else "float32"


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "min": min, "max": max, "abs": abs, "len": len, "sum": sum, "prod": math.prod, "sqrt": math.sqrt,
    "ceil_div": _ceil_div, "round_up": _round_up, "distinct": _distinct, "int": int, "float": float, "complex": complex,
    "tuple": tuple, "itemsize_of": _itemsize, "broadcast": _broadcast, "reduced": _reduced,
    "result_type": _result_type, "compute_dtype": _compute_dtype, "op": _op, "triangle": _triangle,
}  # fmt: skip


def _power(a: Any, b: Any) -> Any:
    if isinstance(a, int) and isinstance(b, int) and max(a.bit_length(), 1) * abs(b) > MAX_BITS:
        raise ValueError(f"{a} ** {b} is too large")
    return a**b


def _multiply(a: Any, b: Any) -> Any:
    for sequence, count in ((a, b), (b, a)):
        if isinstance(sequence, (str, tuple, list)):
            if not isinstance(count, int) or isinstance(sequence, str):
                raise TypeError("only a tuple or list can be repeated, and only a whole number of times")
            if len(sequence) * count > MAX_SEQUENCE:
                raise ValueError(f"a sequence of more than {MAX_SEQUENCE} elements")
    if isinstance(a, int) and isinstance(b, int) and a.bit_length() + b.bit_length() > MAX_BITS:
        raise ValueError("the product is too large")
    return a * b


def _modulo(a: Any, b: Any) -> Any:
    if isinstance(a, str):
        raise TypeError("% does not format text here")
    return a % b


def _shift_left(a: Any, b: Any) -> Any:
    if isinstance(b, int) and b > 64:
        raise ValueError(f"a shift by {b} is too large")
    return a << b


_BINARY: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: _multiply, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: _modulo, ast.Pow: _power, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor, ast.LShift: _shift_left, ast.RShift: operator.rshift,
}  # fmt: skip
_UNARY: Final[dict[type[ast.unaryop], Callable[[Any], Any]]] = {
    ast.UAdd: operator.pos, ast.USub: operator.neg, ast.Not: operator.not_, ast.Invert: operator.invert,
}  # fmt: skip
_COMPARE: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip

_TORCH_FOLDERS: Final = frozenset({"nn", "functional", "special", "linalg", "fft"})
_TORCH_REFUSED: Final = re.compile(r"_|set_|load$|save$|compile$|from_file$|manual_seed$|seed$|use_|hub$|ops$|classes$")


@dataclass(frozen=True)
class Expr:
    """A parsed expression. Two are equal if their texts are equal."""

    text: str
    tree: ast.expr = field(compare=False, repr=False)
    where: FilePlace | None = field(default=None, compare=False, repr=False)
    """Its file, line and key, for messages."""

    @classmethod
    def parse(cls, text: str, where: FilePlace | None = None) -> Expr:
        """Parse ``text``. Raises ExpressionError for anything that the walker does not know."""
        tree = _parse(text, where)
        _check(tree, text, where, torch_calls=False)
        return cls(text, tree, where)

    @cached_property
    def names(self) -> frozenset[str]:
        """The variables that it reads, without functions, dtype names, ``nan`` and ``inf``."""
        return _names(self.tree) - CONSTANTS.keys()

    def evaluate(self, variables: Mapping[str, Any]) -> Any:
        """Its value. Raises ExpressionError, with the text and the cause, if it has none."""
        try:
            return _walk(self.tree, variables, None)
        except (ExpressionError, ArithmeticError, TypeError, ValueError, LookupError, RecursionError) as error:
            words = f"cannot evaluate '{self.text}': {error}"
            cause = None if isinstance(error, ExpressionError) else error
            raise expression_error("KGB263", words, self.where) from cause


def reference_names(text: str, where: FilePlace | None = None) -> frozenset[str]:
    """The variables of a reference expression. Raises ExpressionError if the text is not one."""
    tree = _parse(text, where)
    _check(tree, text, where, torch_calls=True)
    return _names(tree) - CONSTANTS.keys() - {"torch"}


def evaluate_reference(text: str, variables: Mapping[str, Any], torch_module: Any) -> Any:
    """Value of a reference expression such as ``torch.softmax(self, dim)``, keyword arguments included.

    ``torch_module`` has the functions, including those of ``torch.linalg``, ``torch.special``, ``torch.fft`` and
    ``torch.nn.functional``. Exceptions of torch are not caught.
    """
    tree = _parse(text, None)
    _check(tree, text, None, torch_calls=True)
    return _walk(tree, variables, torch_module)


def _parse(text: str, where: FilePlace | None) -> ast.expr:
    if len(text) > MAX_TEXT:
        words = f"an expression has at most {MAX_TEXT} characters, got {len(text)}"
        raise expression_error("KGB260", words, where)
    try:
        tree: ast.expr = syntax.parse(text.strip(), mode="eval").body
        return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        cause = error.msg if isinstance(error, SyntaxError) else str(error)
        raise expression_error("KGB261", f"'{text}' is not an expression: {cause}", where) from None


def _names(tree: ast.expr) -> frozenset[str]:
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in called)


_SIMPLE_NODES: Final = (
    ast.Name, ast.Load, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.And, ast.Or, ast.Compare, ast.IfExp, ast.Tuple,
    ast.List, ast.Subscript, ast.Slice, *_BINARY, *_UNARY, *_COMPARE,
)  # fmt: skip


def _check(tree: ast.expr, text: str, where: FilePlace | None, torch_calls: bool) -> None:
    """Refuse while a file is loaded what evaluation would refuse later."""
    for node in ast.walk(tree):
        cause = _complaint(node, torch_calls)
        if cause:
            raise expression_error("KGB262", f"'{text}': {cause}", where)


def _complaint(node: ast.AST, torch_calls: bool) -> str:
    if isinstance(node, ast.Constant):
        plain = node.value is None or node.value is ... or isinstance(node.value, (bool, int, float, complex, str))
        return "" if plain else f"{node.value!r} is not allowed"
    if isinstance(node, ast.Call):
        return _call_complaint(node, torch_calls)
    if isinstance(node, ast.keyword):
        return "" if torch_calls and node.arg else "keyword arguments are not allowed"
    if isinstance(node, ast.Attribute):
        return _attribute_complaint(node, torch_calls)
    return "" if isinstance(node, _SIMPLE_NODES) else f"{type(node).__name__.lower()} is not allowed in an expression"


def _call_complaint(node: ast.Call, torch_calls: bool) -> str:
    if isinstance(node.func, ast.Name):
        known = ", ".join(sorted(FUNCTIONS))
        return "" if node.func.id in FUNCTIONS else f"there is no function '{node.func.id}'; there are {known}"
    if torch_calls and isinstance(node.func, ast.Attribute):
        return ""
    return "only a named function can be called"


def _attribute_complaint(node: ast.Attribute, torch_calls: bool) -> str:
    if not torch_calls:
        return f"attributes are not allowed, got '.{node.attr}'"
    if _TORCH_REFUSED.match(node.attr):
        return f"'.{node.attr}' is not allowed"
    owner = node.value
    if isinstance(owner, ast.Name) and owner.id == "torch":
        return ""
    if isinstance(owner, ast.Attribute) and owner.attr in _TORCH_FOLDERS:
        return ""
    return f"only functions of torch can be named with a dot, got '.{node.attr}'"


def _walk(node: ast.AST, variables: Mapping[str, Any], torch: Any) -> Any:
    """Value of one node; ``torch`` is None unless this is a reference expression."""
    return _WALKERS[type(node)](node, variables, torch)


def _constant(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    return node.value


def _name(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    if node.id in variables:
        return variables[node.id]
    if node.id == "torch" and torch is not None:
        return torch
    if node.id in CONSTANTS:
        return CONSTANTS[node.id]
    raise ExpressionError("KGB264", f"there is no variable '{node.id}'")


def _binary(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    return _BINARY[type(node.op)](_walk(node.left, variables, torch), _walk(node.right, variables, torch))


def _unary(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    return _UNARY[type(node.op)](_walk(node.operand, variables, torch))


def _boolean(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    stops_at = isinstance(node.op, ast.Or)
    for part in node.values:
        value = _walk(part, variables, torch)
        if bool(value) is stops_at:
            break
    return value


def _comparison(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    left = _walk(node.left, variables, torch)
    result: Any = True
    for op, right_node in zip(node.ops, node.comparators, strict=True):
        right = _walk(right_node, variables, torch)
        step = _COMPARE[type(op)](left, right)
        result = step if result is True else result & step
        if result is False:
            return False
        left = right
    return result


def _conditional(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    return _walk(node.body if _walk(node.test, variables, torch) else node.orelse, variables, torch)


def _tuple(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    return tuple(_walk(part, variables, torch) for part in node.elts)


def _list(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    return [_walk(part, variables, torch) for part in node.elts]


def _subscript(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    return _walk(node.value, variables, torch)[_walk(node.slice, variables, torch)]


def _slice(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    parts = (node.lower, node.upper, node.step)
    return slice(*(None if part is None else _walk(part, variables, torch) for part in parts))


def _call(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    named = isinstance(node.func, ast.Name)
    function = FUNCTIONS[node.func.id] if named else _walk(node.func, variables, torch)
    arguments = [_walk(part, variables, torch) for part in node.args]
    return function(*arguments, **{part.arg: _walk(part.value, variables, torch) for part in node.keywords})


def _attribute(node: Any, variables: Mapping[str, Any], torch: Any) -> Any:
    return getattr(_walk(node.value, variables, torch), node.attr)


_WALKERS: Final[dict[type[ast.AST], Callable[[Any, Mapping[str, Any], Any], Any]]] = {
    ast.Constant: _constant, ast.Name: _name, ast.BinOp: _binary, ast.UnaryOp: _unary, ast.BoolOp: _boolean,
    ast.Compare: _comparison, ast.IfExp: _conditional, ast.Tuple: _tuple, ast.List: _list, ast.Subscript: _subscript,
    ast.Slice: _slice, ast.Call: _call, ast.Attribute: _attribute,
}  # fmt: skip
