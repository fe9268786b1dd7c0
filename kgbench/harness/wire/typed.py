"""Messages as frozen classes: one class per operation, encoded and decoded in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, TypeVar, overload

from kgbench.harness.wire.protocol import Message, ProtocolError


@dataclass(frozen=True)
class Typed:
    """One message with its fields, which JSON can hold."""

    op: ClassVar[str]
    """The operation's name."""

    def encode(self) -> Message:
        """The message as a JSON-ready mapping."""
        return {"op": self.op, **self.content()}

    def content(self) -> dict[str, Any]:
        """Its fields by name, JSON-ready."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: each.content() if isinstance(each, Typed) else each for name, each in values.items()}

    @classmethod
    def decode(cls, message: Mapping[str, Any]) -> Self:
        """From what ``encode`` or ``content`` made. Raises KeyError where a field is missing."""
        return cls(**{each.name: message[each.name] for each in fields(cls)})


A = TypeVar("A", bound=Typed)
B = TypeVar("B", bound=Typed)


@overload
def read_one_of(message: Mapping[str, Any], one: type[A], /) -> A: ...
@overload
def read_one_of(message: Mapping[str, Any], one: type[A], other: type[B], /) -> A | B: ...
@overload
def read_one_of(message: Mapping[str, Any], /, *kinds: type[A]) -> A: ...
def read_one_of(message: Mapping[str, Any], /, *kinds: type[Any]) -> Any:
    """The message as one of these classes. Raises ProtocolError where it is none of them."""
    for kind in kinds:
        if message.get("op") == kind.op:
            try:
                return kind.decode(message)
            except (KeyError, TypeError, ValueError) as error:
                raise ProtocolError(f"{kind.op!r} with wrong fields: {error!r}") from None
    raise ProtocolError(f"{message.get('op')!r} instead of {' or '.join(kind.op for kind in kinds)}")
