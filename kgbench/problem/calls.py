"""Calls in the trace format, ``((T([2, 3], f16), -1), {'dtype': torch.float32})``: read without eval and printed back.

Torch-free. ``cases`` interprets a call's values for an overload.
"""

from __future__ import annotations

import ast
import functools
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kgbench.core import syntax

DTYPES: Final[dict[str, str]] = {
    "f16": "float16", "f32": "float32", "f64": "float64", "bf16": "bfloat16", "i8": "int8", "i16": "int16",
    "i32": "int32", "i64": "int64", "u8": "uint8", "b8": "bool", "c32": "complex32", "c64": "complex64",
    "c128": "complex128",
}  # fmt: skip
"""Torch's name of a dtype, by its short name within ``T(…)``."""

TORCH_WORDS: Final = frozenset(
    {*DTYPES.values(), "strided", "sparse_coo", "contiguous_format", "channels_last", "channels_last_3d",
     "preserve_format"}
)  # fmt: skip
"""Texts among a case's variables that stand for ``torch.NAME``."""

_SHORT: Final = {name: short for short, name in DTYPES.items()}
_FLOATS: Final = {"inf": math.inf, "nan": math.nan}
_IMAGINARY: Final = {"infj": math.inf, "nanj": math.nan}
_TOKEN: Final = re.compile(r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\$([A-Za-z_]\w*)?""", re.DOTALL)
"""A quoted text or a placeholder; a ``$`` within a quoted text is not a placeholder."""


class TraceError(ValueError):
    """A text is not a call in the trace format. The caller adds file and line."""

    def __init__(self, position: int, message: str) -> None:
        """``position`` counts characters from 0; ``message`` says what was expected."""
        super().__init__(position, message)
        self.position = position
        self.message = message

    def __str__(self) -> str:
        return f"character {self.position + 1}: {self.message}"


@dataclass(frozen=True)
class TensorLike:
    """``T(shape, dtype[, strides])``: a tensor without its values."""

    shape: tuple[int, ...]
    dtype: str
    """Torch's name of the dtype, such as ``float16``."""
    strides: tuple[int, ...] | None = None
    """Strides in elements; None for a contiguous tensor."""
    worded: bool = field(default=False, compare=False)
    """Whether strides are written ``stride=(3, 1)``, as in PyTorch's own traces, and print back so."""

    def __repr__(self) -> str:
        shown = f"T({list(self.shape)!r}, {_SHORT[self.dtype]}"
        if self.strides is not None:
            shown += f", stride={self.strides!r}" if self.worded else f", {list(self.strides)!r}"
        return f"{shown})"


@dataclass(frozen=True)
class TorchName:
    """``torch.float16``, ``torch.strided``, ``torch.contiguous_format``."""

    name: str

    def __repr__(self) -> str:
        return f"torch.{self.name}"


@dataclass(frozen=True)
class Call:
    """The arguments of one call. Values are numbers, texts, None, TensorLike, TorchName, and lists and tuples."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]

    def __repr__(self) -> str:
        return f"({self.args!r}, {self.kwargs!r})"


@dataclass(frozen=True)
class ParsedCall:
    """The text of a call, parsed once. Each of its cases gives values to the ``$name``."""

    text: str
    names: tuple[str, ...] = field(compare=False)
    """Names of its placeholders, each once, in order."""
    _read: Callable[[Mapping[str, Any]], Call] = field(compare=False, repr=False)

    def with_values(self, variables: Mapping[str, Any]) -> Call:
        """The call with values; callers must not change it. A dtype's name becomes ``f16`` within ``T(…)``, else
        ``torch.float16``.

        Raises TraceError if a variable is missing or its value is not allowed at its position.
        """
        return self._read(variables)


@functools.lru_cache(maxsize=8192)
def parse(text: str) -> ParsedCall:
    """The call in a text. Raises TraceError for errors that show before its ``$name`` have values."""
    return _parse(text)


def parse_call(text: str) -> Call:
    """The call in a text without ``$name``. Raises TraceError if the text is not a call."""
    return parse(text).with_values({})


def format_call(call: Call) -> str:
    """The text of a call; ``parse_call`` of it returns an equal call."""
    return repr(call)


# --- reading ---


@dataclass(frozen=True)
class _Reader:
    """Reads one text to a call."""

    line: bytes
    """The text for Python's parser: one line, with ``_`` for the ``$`` of a placeholder."""
    text: str
    """The text as written; it has the same number of characters."""
    places: dict[int, str]
    """Placeholders' names by position."""
    variables: Mapping[str, Any]

    def position(self, node: ast.expr) -> int:
        return len(self.line[: node.col_offset].decode())

    def wrong(self, node: ast.expr, expected: str) -> TraceError:
        shown = self.text[self.position(node) : len(self.line[: node.end_col_offset].decode())]
        return TraceError(self.position(node), f"expected {expected}, got {_cut(shown)}")

    def variable(self, node: ast.expr) -> Any:
        """The placeholder's value; ``_NO_VALUE`` if the node is not a placeholder."""
        name = self.places.get(self.position(node)) if isinstance(node, ast.Name) else None
        if name is None:
            return _NO_VALUE
        if name not in self.variables:
            known = ", ".join(f"${each}" for each in self.variables) or "none"
            raise TraceError(self.position(node), f"there is no variable ${name}; there is {known}")
        return self.variables[name]


_NO_VALUE: Final = object()


@dataclass(frozen=True)
class _Tree:
    """A text parsed by Python's parser."""

    tree: ast.expr
    indent: int
    """Number of characters of the text before the call."""
    line: bytes
    text: str
    places: dict[int, str]

    def __call__(self, variables: Mapping[str, Any]) -> Call:
        try:
            return _call(_Reader(self.line, self.text, self.places, variables), self.tree)
        except TraceError as error:
            raise TraceError(self.indent + error.position, error.message) from None
        except RecursionError:
            raise TraceError(0, "not a call: nested too deep") from None


@dataclass(frozen=True)
class _Whole:
    """A call without ``$name``."""

    call: Call

    def __call__(self, variables: Mapping[str, Any]) -> Call:
        return self.call


def _parse(text: str) -> ParsedCall:
    places = _placeholders(text)
    line = "".join("_" if at in places else " " if mark in "\r\n" else mark for at, mark in enumerate(text)).rstrip()
    indent = len(line) - len(line := line.lstrip())
    try:
        tree = syntax.parse(line, mode="eval").body
    except SyntaxError as error:
        raise TraceError(indent + max((error.offset or 1) - 1, 0), f"not a call: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise TraceError(0, f"not a call: {error or 'nested too deep'}") from None
    inner = {at - indent: name for at, name in places.items()}
    read = _Tree(tree, indent, line.encode(), text[indent:], inner)
    return ParsedCall(text, tuple(dict.fromkeys(places.values())), read if places else _Whole(read({})))


def _placeholders(text: str) -> dict[int, str]:
    """Names by the position of their ``$``."""
    found = {}
    for match in _TOKEN.finditer(text):
        if match.group().startswith("$"):
            if match.group(1) is None:
                raise TraceError(match.start(), "expected a variable's name after $")
            found[match.start()] = match.group(1)
    return found


def _call(reader: _Reader, tree: ast.expr) -> Call:
    if not (isinstance(tree, ast.Tuple) and len(tree.elts) == 2):
        raise reader.wrong(tree, "((ARGUMENTS,), {KEYWORDS})")
    args, kwargs = tree.elts
    if not isinstance(args, ast.Tuple):
        raise reader.wrong(args, "a tuple of arguments (one alone is written (ARGUMENT,))")
    if not isinstance(kwargs, ast.Dict):
        raise reader.wrong(kwargs, "a dict of keyword arguments, {} for none")
    values = tuple(_value(reader, node) for node in args.elts)
    named: dict[str, Any] = {}
    for key, node in zip(kwargs.keys, kwargs.values, strict=True):
        if not (isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value.isidentifier()):
            raise reader.wrong(key or node, "a keyword argument's name as a text")
        if key.value in named:
            raise reader.wrong(key, "each keyword argument once")
        named[key.value] = _value(reader, node)
    return Call(values, named)


def _value(reader: _Reader, node: ast.expr) -> Any:
    handler = _VALUES.get(type(node))
    value = _NO_VALUE if handler is None else handler(reader, node)
    if value is _NO_VALUE:
        raise reader.wrong(node, _EXPECTED)
    return value


_EXPECTED: Final = "a number, a text, True, False, None, a list, a tuple, torch.NAME or T(SHAPE, DTYPE)"


def _constant(reader: _Reader, node: Any) -> Any:
    return node.value if node.value is None or isinstance(node.value, (int, float, complex, str)) else _NO_VALUE


def _list(reader: _Reader, node: Any) -> list[Any]:
    return [_value(reader, part) for part in node.elts]


def _tuple(reader: _Reader, node: Any) -> tuple[Any, ...]:
    return tuple(_value(reader, part) for part in node.elts)


def _name(reader: _Reader, node: Any) -> Any:
    given = reader.variable(node)
    if given is not _NO_VALUE:
        return _given(reader, node, given)
    if node.id in _IMAGINARY:
        return complex(0.0, _IMAGINARY[node.id])
    return _FLOATS.get(node.id, _NO_VALUE)


def _given(reader: _Reader, node: ast.expr, value: Any) -> Any:
    """A variable's value in the format's types."""
    if isinstance(value, str):
        return TorchName(value) if value in TORCH_WORDS else value
    if isinstance(value, (list, tuple)):
        parts = [_given(reader, node, part) for part in value]
        return parts if isinstance(value, list) else tuple(parts)
    if value is None or isinstance(value, (bool, int, float, complex, TensorLike, TorchName)):
        return value
    raise TraceError(reader.position(node), f"a variable of type {type(value).__name__} cannot stand in a call")


def _minus(reader: _Reader, node: Any) -> Any:
    if not isinstance(node.op, ast.USub):
        return _NO_VALUE
    value = _value(reader, node.operand)
    if isinstance(value, bool) or not isinstance(value, (int, float, complex)):
        return _NO_VALUE
    # As Python prints it: '-2j' has the real part 0, but -(2j) has the real part -0.
    return complex(0.0, -value.imag) if isinstance(value, complex) else -value


def _sum(reader: _Reader, node: Any) -> Any:
    """``1+2j``, part by part, so that signs of zeros are kept."""
    if not isinstance(node.op, (ast.Add, ast.Sub)):
        return _NO_VALUE
    left = node.left
    negative = isinstance(left, ast.UnaryOp) and isinstance(left.op, ast.USub)
    real = _value(reader, left.operand if isinstance(left, ast.UnaryOp) and negative else left)
    imaginary = _value(reader, node.right)
    plain = isinstance(real, (int, float)) and not isinstance(real, bool)
    if not (plain and isinstance(imaginary, complex) and isinstance(node.right, (ast.Constant, ast.Name))):
        return _NO_VALUE
    sign = -1 if isinstance(node.op, ast.Sub) else 1
    try:
        return complex(-float(real) if negative else float(real), math.copysign(1, sign) * imaginary.imag)
    except OverflowError:
        return _NO_VALUE


def _torch(reader: _Reader, node: Any) -> Any:
    of_torch = isinstance(node.value, ast.Name) and node.value.id == "torch" and not node.attr.startswith("_")
    return TorchName(node.attr) if of_torch else _NO_VALUE


def _tensor(reader: _Reader, node: Any) -> Any:
    if not (isinstance(node.func, ast.Name) and node.func.id == "T"):
        return _NO_VALUE
    worded = [keyword.value for keyword in node.keywords if keyword.arg in ("stride", "strides")]
    parts = [*node.args, *worded]
    if len(parts) not in (2, 3) or len(worded) != len(node.keywords) or len(node.args) < 2:
        raise reader.wrong(node, "T(SHAPE, DTYPE) or T(SHAPE, DTYPE, STRIDES)")
    shape = _sizes(reader, parts[0], "a list of sizes")
    strides = _sizes(reader, parts[2], "a list of strides") if len(parts) == 3 else None
    if strides is not None and len(strides) != len(shape):
        raise reader.wrong(parts[2], f"{len(shape)} strides for {len(shape)} sizes")
    return TensorLike(shape, _dtype(reader, parts[1]), strides, worded=bool(worded))


def _sizes(reader: _Reader, node: ast.expr, expected: str) -> tuple[int, ...]:
    value = _value(reader, node)
    whole = isinstance(value, (list, tuple)) and all(type(size) is int and size >= 0 for size in value)
    if not whole:
        raise reader.wrong(node, f"{expected}, whole numbers from 0 on")
    return tuple(value)


def _dtype(reader: _Reader, node: ast.expr) -> str:
    given = reader.variable(node)
    if given is _NO_VALUE:
        name = DTYPES.get(node.id) if isinstance(node, ast.Name) else None
    else:
        name = given.name if isinstance(given, TorchName) else given
        name = DTYPES.get(name, name) if isinstance(name, str) else None
    if name not in _SHORT:
        raise reader.wrong(node, f"a dtype, one of {' '.join(DTYPES)}")
    return name


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."


_VALUES: Final[dict[type[ast.expr], Callable[[_Reader, Any], Any]]] = {
    ast.Constant: _constant, ast.List: _list, ast.Tuple: _tuple, ast.Name: _name, ast.UnaryOp: _minus,
    ast.BinOp: _sum, ast.Attribute: _torch, ast.Call: _tensor,
}  # fmt: skip
