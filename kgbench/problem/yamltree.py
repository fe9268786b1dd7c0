"""A YAML file as nodes that know their file, line and key, so that every complaint can name them.

Stricter than PyYAML on purpose: repeated keys, ``no`` read as false, ``1e-3`` read as text and ``010`` read as 8 are
refused. ``format`` interprets the keys.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

import yaml

from kgbench.core.errors import ExpressionError, ProblemFileError
from kgbench.core.names import did_you_mean
from kgbench.problem.expressions import Expr
from kgbench.problem.file_place import FilePlace

_STR: Final = "tag:yaml.org,2002:str"
_INT: Final = "tag:yaml.org,2002:int"
_FLOAT: Final = "tag:yaml.org,2002:float"
_BOOL: Final = "tag:yaml.org,2002:bool"
_NULL: Final = "tag:yaml.org,2002:null"
_PLAIN_INT: Final = re.compile(r"[-+]?(0|[1-9][0-9]*)$")
_PLAIN_FLOAT: Final = re.compile(r"[-+]?([0-9]+\.[0-9]*([eE][-+][0-9]+)?|\.[0-9]+|\.(inf|nan))$")
_NUMBER_TEXT: Final = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?$|[-+]?(inf|nan)$", re.IGNORECASE)
_MAX_DEPTH: Final = 8
"""Maximum depth of nested lists in a value."""
_MAX_TREE_DEPTH: Final = 24
"""Maximum depth to which a file is read, since a list that contains itself has no end."""
_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_T = TypeVar("_T")


class Complaint(ValueError):
    """What is wrong at one or several places. A ValueError, so that pydantic collects it and continues to read."""

    def __init__(self, *errors: ProblemFileError | ExpressionError) -> None:
        super().__init__(*errors)
        self.errors = errors


def write_as_number(text: str) -> str:
    """``text``, which looks like a number, as YAML writes numbers: ``1e-2`` becomes ``1.0e-2``."""
    if text.lstrip("+-").lower() in ("inf", "nan"):
        return text.lower().replace("inf", ".inf").replace("nan", ".nan")
    mantissa, _, exponent = text.lower().partition("e")
    if not exponent:
        return mantissa
    sign = exponent if exponent[0] in "+-" else f"+{exponent}"
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}e{sign}"


@dataclass(frozen=True)
class Node:
    """One value of the file, with its dotted key."""

    raw: yaml.Node
    key: str
    file: Path
    line: int
    """Line of the key, or of the value if it has no key; counted from 1."""
    name: str = ""
    """The last key alone; empty in a list."""

    @property
    def where(self) -> FilePlace:
        return FilePlace(str(self.file), self.line, self.key)

    def complaint(self, number: str, what: str, step: str = "") -> ProblemFileError:
        """A complaint about it; ``number`` is one of ``messages.py``."""
        return ProblemFileError(number, self.file, self.line, self.key, what, step)

    def fail(self, number: str, what: str, step: str = "") -> NoReturn:
        """Raise Complaint."""
        raise Complaint(self.complaint(number, what, step))

    def is_mapping(self) -> bool:
        return isinstance(self.raw, yaml.MappingNode)

    def is_text(self) -> bool:
        return isinstance(self.raw, yaml.ScalarNode) and self.raw.tag == _STR

    def mapping(self) -> dict[str, Node]:
        """Its values by key, in the file's order. Refuses repeated keys and keys that are not text."""
        if not isinstance(self.raw, yaml.MappingNode):
            self.fail("KGB230", f"expected keys with values, got {self.kind_and_text()}")
        found = self.children()
        if errors := [complaint for _, complaint in found if complaint is not None]:
            raise Complaint(*errors)
        return {child.name: child for child, _ in found}

    def children(self) -> Sequence[tuple[Node, ProblemFileError | None]]:
        """Values of a mapping, each with the complaint about its key, if any."""
        found: list[tuple[Node, ProblemFileError | None]] = []
        lines: dict[str, int] = {}
        for key_node, value_node in self.raw.value:
            line = _line(key_node)
            named = Node(key_node, self.key, self.file, line)
            try:
                name = named._key_text()
            except Complaint as complaint:
                found.append((named, complaint.errors[0]))  # type: ignore[arg-type]
                continue
            child = Node(value_node, f"{self.key}.{name}" if self.key else name, self.file, line, name)
            repeated = f"appears twice, first at line {lines[name]}" if name in lines else ""
            found.append((child, child.complaint("KGB221", repeated, "keep one") if repeated else None))
            lines.setdefault(name, line)
        return found

    def sequence(self) -> list[Node]:
        if not isinstance(self.raw, yaml.SequenceNode):
            self.fail("KGB230", f"expected a list, got {self.kind_and_text()}", "write [ … ]")
        return [
            Node(child, f"{self.key}[{index}]", self.file, _line(child)) for index, child in enumerate(self.raw.value)
        ]

    def text(self) -> str:
        if not isinstance(self.raw, yaml.ScalarNode) or self.raw.tag == _NULL:
            self.fail("KGB230", f"expected text, got {self.kind_and_text()}")
        written = str(self.raw.value)
        if self.raw.tag == _BOOL and written.lower() not in ("true", "false"):
            self.fail(
                "KGB231",
                f"expected text, got {written}, which YAML reads as {_yaml_bool(written)}",
                f"write '{written}'",
            )
        if self.raw.tag != _STR:
            self.fail("KGB231", f"expected text, got {self.kind_and_text()}", f"write '{written}'")
        return written

    def choice(self, known: Iterable[str]) -> str:
        word = self.text()
        if word not in known:
            self.fail("KGB232", f"'{word}' is not known here", did_you_mean(word, known))
        return word

    def boolean(self) -> bool:
        value = self.value() if isinstance(self.raw, yaml.ScalarNode) else None
        if not isinstance(value, bool):
            self.fail("KGB230", f"expected true or false, got {self.kind_and_text()}")
        return value

    def number(self) -> float | int:
        if isinstance(self.raw, yaml.ScalarNode) and self.raw.tag == _STR and _NUMBER_TEXT.match(self.raw.value):
            written = self.raw.value
            self.fail("KGB231", f"expected a number, got the text '{written}'", f"write {write_as_number(written)}")
        value = self.value() if isinstance(self.raw, yaml.ScalarNode) else None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            self.fail("KGB230", f"expected a number, got {self.kind_and_text()}")
        return value

    def integer(self) -> int:
        value = self.number()
        if not isinstance(value, int):
            self.fail("KGB230", f"expected a whole number, got {value}")
        return value

    def value(self, depth: int = 0) -> Any:
        """A plain value: text, number, true or false, null, or a list of these, which becomes a tuple."""
        if isinstance(self.raw, yaml.SequenceNode) and depth < _MAX_DEPTH:
            return tuple(child.value(depth + 1) for child in self.sequence())
        if not isinstance(self.raw, yaml.ScalarNode):
            self.fail("KGB230", f"expected a value or a list of values, got {self.kind_and_text()}")
        written = str(self.raw.value)
        readers = {_STR: self._free_text, _INT: self._int, _FLOAT: self._float, _BOOL: self._bool}
        if self.raw.tag == _NULL:
            return None
        if self.raw.tag not in readers:
            self.fail(
                "KGB231",
                f"expected a value, got {written}, which YAML reads as a {_short(self.raw.tag)}",
                f"write '{written}'",
            )
        return readers[self.raw.tag](written)

    def expr(self, text: str | None = None) -> Expr:
        """An expression; a number is its own value, a list is a tuple of expressions. ``text``: a part of it."""
        try:
            return Expr.parse(self._expr_text() if text is None else text, self.where)
        except ExpressionError as error:
            raise Complaint(error) from None

    def _expr_text(self) -> str:
        if isinstance(self.raw, yaml.SequenceNode):
            return "(" + "".join(f"{child._expr_text()}, " for child in self.sequence()) + ")"
        if isinstance(self.raw, yaml.ScalarNode) and self.raw.tag in (_INT, _FLOAT, _BOOL, _NULL):
            return repr(self.value())
        return self.text()

    def _key_text(self) -> str:
        if not isinstance(self.raw, yaml.ScalarNode) or self.raw.tag != _STR:
            written = str(self.raw.value) if isinstance(self.raw, yaml.ScalarNode) else "a list"
            self.fail("KGB223", f"expected a text as key, got {written}", f"write '{written}':")
        return str(self.raw.value)

    def _free_text(self, written: str) -> str:
        if not getattr(self.raw, "style", None) and _NUMBER_TEXT.match(written):
            self.fail("KGB231", f"expected a number, got the text '{written}'", f"write {write_as_number(written)}")
        return written

    def _int(self, written: str) -> int:
        if not _PLAIN_INT.match(written):
            read_as = yaml.safe_load(written)
            self.fail(
                "KGB231",
                f"'{written}' is read as the number {read_as}",
                f"write {read_as}, or '{written}' for the text",
            )
        return int(written)

    def _float(self, written: str) -> float:
        if not _PLAIN_FLOAT.match(written.lower()):
            self.fail("KGB231", f"'{written}' is read as the number {yaml.safe_load(written)}", "write it in decimal")
        return float(written.lower().replace(".inf", "inf").replace(".nan", "nan"))

    def _bool(self, written: str) -> bool:
        if written.lower() not in ("true", "false"):
            as_bool = _yaml_bool(written)
            self.fail(
                "KGB231",
                f"got {written}, which YAML reads as {as_bool}",
                f"write '{written}' for the text, or {as_bool}",
            )
        return written.lower() == "true"

    def kind_and_text(self) -> str:
        """``the text 'x'`` or ``a list``, for a message that says what was expected instead."""
        if isinstance(self.raw, yaml.MappingNode):
            return "keys with values"
        if isinstance(self.raw, yaml.SequenceNode):
            return "a list"
        written = str(self.raw.value)
        kinds = {_STR: f"the text '{written}'", _NULL: "nothing", _BOOL: f"the truth value {written}"}
        return kinds.get(
            self.raw.tag, f"the {'number' if self.raw.tag in (_INT, _FLOAT) else _short(self.raw.tag)} {written}"
        )


class Keys(dict[str, Any]):
    """A mapping of the file by key: each value is a Keys, an Items or, for anything else, a Node."""

    node: Node
    whole: bool = True
    """False if unknown keys were removed, one of which may be a misspelt required key."""


class Items(list[Any]):
    """A list of the file."""

    node: Node


def node_of(datum: Keys | Items | Node) -> Node:
    return datum if isinstance(datum, Node) else datum.node


def each(read: Callable[[Node], _T], nodes: Iterable[Node]) -> list[_T]:
    """The results of ``read`` for all nodes. Raises one Complaint about all that are wrong."""
    made: list[_T] = []
    errors: list[ProblemFileError | ExpressionError] = []
    for node in nodes:
        try:
            made.append(read(node))
        except Complaint as complaint:
            errors += complaint.errors
    if errors:
        raise Complaint(*errors)
    return made


def read_data(node: Node, complaints: list[ProblemFileError | ExpressionError], depth: int = 0) -> Keys | Items | Node:
    """The tree in the form for pydantic. Repeated keys and keys that are not text are left out, with complaints."""
    if isinstance(node.raw, yaml.MappingNode) and depth < _MAX_TREE_DEPTH:
        keys = Keys()
        keys.node = node
        for child, complaint in node.children():
            if complaint is None:
                keys[child.name] = read_data(child, complaints, depth + 1)
            else:
                complaints.append(complaint)
        return keys
    if isinstance(node.raw, yaml.SequenceNode) and depth < _MAX_TREE_DEPTH:
        items = Items(read_data(child, complaints, depth + 1) for child in node.sequence())
        items.node = node
        return items
    return node


def read_tree(path: Path, text: str) -> Node:
    """The file's root. Raises ProblemFileError if it is not one YAML document."""
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else int(mark.line) + 1
        raise ProblemFileError("KGB210", path, line, "", f"not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ProblemFileError("KGB210", path, 1, "", f"not YAML: {error}") from None
    if root is None:
        raise ProblemFileError("KGB211", path, 1, "", "the file is empty", "see docs/problem-format.md")
    return Node(root, "", path, _line(root))


def _line(raw: yaml.Node) -> int:
    return int(raw.start_mark.line) + 1


def _yaml_bool(written: str) -> str:
    return "true" if written.lower() in ("yes", "on") else "false"


def _short(tag: str) -> str:
    return tag.rpartition(":")[2]
