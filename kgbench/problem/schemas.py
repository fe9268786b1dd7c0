"""Schemas of vLLM's compiled operators, as vLLM registers them with torch. This module imports no torch.

``_C::silu_and_mul(Tensor! result, Tensor input) -> ()`` has the registered name, the parameters with their types, and
the return type. ``!`` marks a tensor that the operator writes; torch prints it as ``Tensor($0! -> )``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kgbench.problem.model import Parameter

EXAMPLE: Final = "_C::silu_and_mul(Tensor! result, Tensor input) -> ()"
KINDS: Final = {
    "Tensor": "Tensor", "Tensor | None": "Tensor?", "list[Tensor]": "Tensor[]", "int": "int", "int | None": "int?",
    "float": "float", "float | None": "float?", "bool": "bool", "bool | None": "bool?", "str": "str",
    "str | None": "str?", "dtype": "ScalarType", "dtype | None": "ScalarType?",
}  # fmt: skip
"""The schema's type for each type of an entry's parameter."""
TYPES: Final = {kind: written for written, kind in KINDS.items()}
"""The type of an entry's parameter for each type of a schema."""

_NAME: Final = re.compile(r"\w+::\w+$")
_MARK: Final = re.compile(r"\((?:\$\d+|[a-z])(!?)(?: -> [^)]*)?\)")
"""Matches an alias annotation as torch prints it."""


@dataclass(frozen=True)
class SchemaParameter:
    """One parameter of a schema."""

    kind: str
    """Its type without alias annotation: ``Tensor?``."""
    name: str
    is_written: bool
    default: str
    """Text of its default; empty when it has none."""


@dataclass(frozen=True)
class Schema:
    """A registered operator's declaration."""

    name: str
    """``namespace::name``."""
    parameters: tuple[SchemaParameter, ...]
    returns: str
    """``()``, ``Tensor`` or ``(Tensor, Tensor)``; empty when the schema has no return type."""

    @property
    def plain(self) -> str:
        """Types and names, in the form of ``baselines/vllm_operators.py``: ``Tensor result, Tensor input``."""
        return ", ".join(f"{each.kind} {each.name}" for each in self.parameters)


def parsed(text: str) -> Schema:
    """Parses a schema. Raises ValueError when the text is not one."""
    name, _, rest = " ".join(_MARK.sub(r"\1", text).split()).partition("(")
    end = _closing(rest)
    returns = rest[end + 1 :].strip()
    if not _NAME.match(name) or end < 0 or (returns and not returns.startswith("->")):
        raise ValueError(f"'{text}' is no schema of an operator; write it as torch prints it: {EXAMPLE}")
    parameters = [_parameter(each) for each in _split(rest[:end]) if each != "*"]
    return Schema(name, tuple(parameters), returns.removeprefix("->").strip())


def entry_difference(plain: str, parameters: Sequence[Parameter]) -> str:
    """How the types of an entry's parameters differ from a schema's, as a sentence; empty when they match.

    plain: ``Tensor result, Tensor input``. Names may differ, because arguments are passed by position.
    """
    wanted = _split(plain)
    if len(wanted) != len(parameters):
        return f"it has {len(wanted)} parameters, and entry has {len(parameters)}"
    for want, parameter in zip(wanted, parameters, strict=True):
        if KINDS.get(parameter.type) != want.rpartition(" ")[0].replace("SymInt", "int"):
            return f"it has '{want}', and entry '{parameter.name}: {parameter.type}'"
    return ""


def _parameter(written: str) -> SchemaParameter:
    declared, _, default = written.partition("=")
    kind, _, name = declared.strip().rpartition(" ")
    return SchemaParameter(kind.replace("!", "").strip(), name, "!" in kind, default.strip())


def _closing(text: str) -> int:
    """Index of the bracket that closes one opened before the text; -1 when there is none."""
    depth = 1
    for place, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if depth == 0:
            return place
    return -1


def _split(parameters: str) -> list[str]:
    """Splits at commas outside brackets."""
    depth, found = 0, [""]
    for character in parameters:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [each.strip() for each in found if each.strip()]
