"""Facts from torch about an ATen operator: its overloads' signatures, its tags, its function, its documentation."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from kgbench.core.kinds import Kind
from kgbench.torchtools.opinfo import SampledCall

NEVER: Final = frozenset({"layout", "device", "pin_memory", "memory_format", "generator", "non_blocking", "out"})
"""Arguments that no reference needs."""


class Unknown(Exception):
    """Torch has no such operator, or a problem file cannot express it; the text says which."""


@dataclass(frozen=True)
class Side:
    """One overload with its facts for the file."""

    name: str
    schema: Any
    entry: str
    returns: str
    """The argument that is returned; empty without one."""
    reference: str
    calls: tuple[SampledCall, ...]

    model: str
    """The overload that returns the same in a new tensor; empty without one."""

    @property
    def function(self) -> Any:
        """The overload that can be called without ``out``."""
        return getattr(getattr(torch.ops.aten, self.schema.name.removeprefix("aten::")), self.model)

    @property
    def given(self) -> tuple[tuple[str, str], ...]:
        """Parameters except those that are only written. Overloads with equal ones share their cases."""
        return given_parameters(self.schema)


# --- the signature ---


def schemas_of(operator: str, overload: str) -> dict[str, Any]:
    packet = getattr(torch.ops.aten, operator, None) if operator.isidentifier() else None
    if packet is None or not hasattr(packet, "overloads"):
        raise Unknown(f"torch {torch.__version__} has no operator aten::{operator}")
    schemas = {name: getattr(packet, name)._schema for name in packet.overloads()}
    if overload:
        if overload not in schemas:
            raise Unknown(f"aten::{operator} has no overload '{overload}'; it has {', '.join(schemas)}")
        if words := _unsayable(schemas[overload]):
            raise Unknown(f"aten::{operator}.{overload} {words}")
        return {overload: schemas[overload]}
    kept = {name: schema for name, schema in schemas.items() if not _unsayable(schema)}
    if not kept and schemas:
        raise Unknown(f"aten::{operator} {_unsayable(next(iter(schemas.values())))}")
    return kept


_PLAIN: Final = {
    "Tensor": "Tensor", "int": "int", "SymInt": "int", "float": "float", "complex": "complex", "bool": "bool",
    "str": "str", "number": "Scalar", "ScalarType": "dtype", "Layout": "layout", "Device": "device",
    "MemoryFormat": "memory_format", "Generator": "Generator",
}  # fmt: skip
_IN_LISTS: Final = frozenset({"Tensor", "Tensor | None", "int", "float", "bool"})


def _type(kind: str) -> str | None:
    """The entry's name of a schema's type; None if an entry cannot express it."""
    if kind.startswith("Optional["):
        inner = _type(kind[len("Optional[") : -1])
        return None if inner is None else f"{inner} | None"
    if kind.startswith("List["):
        inner = _type(kind[len("List[") : -1])
        return f"list[{inner}]" if inner in _IN_LISTS else None
    return _PLAIN.get(kind)


def _unsayable(schema: Any) -> str:
    """Why no entry can express this overload; empty if one can."""
    for argument in schema.arguments:
        if _type(str(argument.real_type)) is None:
            return f"has the parameter '{argument.name}' of type {argument.real_type}, which no entry can have"
    returned = [str(each.type) for each in schema.returns]
    tensors = any("Tensor" in str(each.type) for each in (*schema.arguments, *schema.returns))
    right = set(returned) <= {"Tensor"} or returned in (["List[Tensor]"], ["number"])
    return "" if tensors and right else f"returns {', '.join(returned) or 'nothing'}, which is for TorchScript"


def given_parameters(schema: Any) -> tuple[tuple[str, str], ...]:
    return tuple((each.name, str(each.real_type)) for each in schema.arguments if not each.is_out)


def has_out(schema: Any) -> bool:
    return any(each.is_out for each in schema.arguments)


def side_of(operator: str, name: str, schema: Any, calls: Sequence[SampledCall], model: str) -> Side:
    parameters, starred = [], False
    for argument in schema.arguments:
        if argument.kwarg_only and not starred:
            parameters.append("*")
            starred = True
        parameters.append(f"{argument.name}: {_type(str(argument.real_type))}{_default(argument)}")
    kinds = [_type(str(each.type)) for each in schema.returns]
    result = kinds[0] if len(kinds) == 1 else f"tuple[{', '.join(map(str, kinds))}]" if kinds else "None"
    written = {next(iter(a.alias_info.before_set)): a.name for a in schema.arguments if is_written(a)}
    aliases = [each.alias_info.before_set for each in schema.returns if each.alias_info is not None]
    back = [written[mark] for marks in aliases for mark in marks if mark in written]
    return Side(
        name=name,
        schema=schema,
        entry=f"{operator if name == 'default' else f'{operator}_{name}'}({', '.join(parameters)}) -> {result}",
        returns=back[0] if len(back) == 1 else "",
        reference=_reference(operator, schema),
        calls=tuple(calls),
        model=model,
    )


def is_written(argument: Any) -> bool:
    return argument.alias_info is not None and argument.alias_info.is_write


def _default(argument: Any) -> str:
    if not argument.has_default_value():
        return ""
    value = argument.default_value
    if str(argument.real_type) == "MemoryFormat":
        value = str(torch.contiguous_format).removeprefix("torch.")
    return f" = {value!r}"


# --- what is right ---


def _function(operator: str) -> str:
    """The name by which an expression can call an operator's function in torch; empty without one."""
    base = operator.rstrip("_")
    for folder in ("special", "linalg", "fft"):
        if base.startswith(f"{folder}_") and hasattr(getattr(torch, folder), base.removeprefix(f"{folder}_")):
            return f"torch.{folder}.{base.removeprefix(f'{folder}_')}"
    if hasattr(torch, base) and not base.startswith("_"):
        return f"torch.{base}"
    return f"torch.nn.functional.{base}" if hasattr(torch.nn.functional, base) else ""


def _reference(operator: str, schema: Any) -> str:
    function = _function(operator)
    if not function:
        return ""
    given = [each for each in schema.arguments if each.name not in NEVER and not each.is_out]
    words = [f"{each.name}={each.name}" if each.kwarg_only else each.name for each in given]
    return f"{function}({', '.join(words)})"


def _documentation(operator: str) -> str:
    function = _function(operator)
    found: Any = torch
    for part in function.split(".")[1:]:
        found = getattr(found, part)
    text = inspect.getdoc(found) if function else ""
    alias = re.search(r"Alias for :\w+:`~?torch\.([\w.]+)`", text or "")
    if alias:
        found = torch
        for part in alias.group(1).split("."):
            found = getattr(found, part, None)
        text = inspect.getdoc(found)
    return text or ""


def prose_of(operator: str) -> list[str]:
    """Paragraphs of torch's documentation before its lists of arguments, without markup."""
    text = _documentation(operator).strip()
    text = re.split(r"\n\s*(?:Args?|Arguments|Keyword args|Example|Examples|Returns|Shape|Parameters)::?\s*\n", text)[0]
    text = re.sub(r":\w+:`~?([^`<]+?)(?:\s*<[^>]*>)?`", r"\1", text).replace("``", "`")
    text = re.sub(r"\.\. \w+::\s*", "", text)
    paragraphs = [" ".join(part.split()) for part in re.split(r"\n\s*\n", text)]
    return [each for each in paragraphs if each and not re.match(rf"{operator.strip('_')}\(|.*\) -> ", each)]


def kind_of(schema: Any, tags: frozenset[str]) -> Kind:
    if "nondeterministic_seeded" in tags:
        return Kind.RANDOM
    if any(str(each.type) == "number" for each in schema.returns):
        return Kind.SYNC
    if any(each.alias_info is not None and not each.alias_info.is_write for each in schema.returns):
        return Kind.VIEW
    tensors = any("Tensor" in str(each.type) for each in schema.arguments if not each.is_out)
    return Kind.COMPUTE if tensors else Kind.CREATION


def tags_of(operator: str, name: str) -> frozenset[str]:
    return frozenset(str(tag).removeprefix("Tag.") for tag in getattr(getattr(torch.ops.aten, operator), name).tags)
