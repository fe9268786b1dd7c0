"""Details of every type with a secret in every field: no list of types that a new one could be missing from."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

SECRET = "secret7351"
VALUES: dict[Any, list[Any]] = {
    str: [SECRET, "0.7351"],
    int: [7351],
    float: [7351.7351, 0.73512],
    bool: [True, False],
    type(None): [None],
}
"""What may stand in a field of each type."""


def with_secrets(cls: type) -> Iterator[Any]:
    """One object for each value of each field, the other fields with their first values, which are secret, too."""
    kinds = typing.get_type_hints(cls)
    options = {each.name: list(_values(kinds[each.name])) for each in dataclasses.fields(cls)}
    first = {name: values[0] for name, values in options.items()}
    yield cls(**first)
    for name, values in options.items():
        yield from (cls(**{**first, name: value}) for value in values[1:])


def _values(kind: Any) -> Iterator[Any]:
    if isinstance(kind, types.UnionType):
        for each in typing.get_args(kind):
            yield from _values(each)
    elif isinstance(kind, type) and issubclass(kind, StrEnum):
        yield from kind
    elif dataclasses.is_dataclass(kind) and isinstance(kind, type):
        yield from with_secrets(kind)
    elif typing.get_origin(kind) is tuple:
        inner = next(_values(typing.get_args(kind)[0]))
        yield from ((inner, inner, inner), (inner,), ())
    else:
        yield from VALUES[kind]
