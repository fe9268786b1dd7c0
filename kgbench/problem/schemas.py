"""Schemas of vLLM's compiled operators, as a version of vLLM registers them with torch. No torch here.

``_C::silu_and_mul(Tensor! result, Tensor input) -> ()``: the registered name, parameters with their types, what is
returned. ``!`` marks what is written; torch prints it as ``Tensor($0! -> )``.
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
"""A schema's word for each type of an entry."""
TYPES: Final = {kind: written for written, kind in KINDS.items()}
"""An entry's type for each word of a schema."""

_NAME: Final = re.compile(r"\w+::\w+$")
_MARK: Final = re.compile(r"\((?:\$\d+|[a-z])(!?)(?: -> [^)]*)?\)")
"""How torch prints an alias mark."""


@dataclass(frozen=True)
class SchemaParameter:
    """One parameter of a schema."""

    kind: str
    """Its type, without marks: ``Tensor?``."""
    name: str
    is_written: bool
    default: str
    """Empty where it has none."""


@dataclass(frozen=True)
class Schema:
    """A registered operator's declaration."""

    name: str
    """``namespace::name``."""
    parameters: tuple[SchemaParameter, ...]
    returns: str
    """``()``, ``Tensor`` or ``(Tensor, Tensor)``; empty where the text does not say."""

    @property
    def plain(self) -> str:
        """Types and names, as a row of ``baselines/vllm_operators.py`` has them: ``Tensor result, Tensor input``."""
        return ", ".join(f"{each.kind} {each.name}" for each in self.parameters)


def parsed(text: str) -> Schema:
    """The schema in a text; raises ``ValueError`` where it is none."""
    name, _, rest = " ".join(_MARK.sub(r"\1", text).split()).partition("(")
    end = _closing(rest)
    returns = rest[end + 1 :].strip()
    if not _NAME.match(name) or end < 0 or (returns and not returns.startswith("->")):
        raise ValueError(f"'{text}' is no schema of an operator; write it as torch prints it: {EXAMPLE}")
    parameters = [_parameter(each) for each in _split(rest[:end]) if each != "*"]
    return Schema(name, tuple(parameters), returns.removeprefix("->").strip())


def entry_difference(plain: str, parameters: Sequence[Parameter]) -> str:
    """What in an entry is of another type than in ``Tensor result, Tensor input``; empty where all fits.

    Calls are by position, so names may differ.
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
    """Where the bracket closes that was open before the text; -1 where it does not."""
    depth = 1
    for place, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if depth == 0:
            return place
    return -1


def _split(parameters: str) -> list[str]:
    """At the commas that stand in no brackets."""
    depth, found = 0, [""]
    for character in parameters:
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            found.append("")
        else:
            found[-1] += character
    return [each.strip() for each in found if each.strip()]
