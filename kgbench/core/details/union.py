"""The union of all details of a verdict, and how it is stored."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from kgbench.core.details.absence import (
    Capability,
    DeviceMemory,
    HarnessTrouble,
    Lacking,
    NoCandidate,
    NoCode,
    NoLibrary,
    NotApplicable,
    NotOffered,
)
from kgbench.core.details.failures import (
    Crash,
    Deadline,
    HostMemory,
    NoEntry,
    PhysicalBound,
    PolicyBroken,
    QueueStalled,
    Raised,
    RuleBroken,
    StateUnfit,
)
from kgbench.core.details.outputs import (
    Alias,
    Dtype,
    Guard,
    InputChanged,
    PointersChanged,
    Shape,
    StorageOffset,
    Strides,
    WrongAttribute,
)
from kgbench.core.details.values import (
    Impossible,
    Mismatch,
    NoCanonicalForm,
    RootMeanSquare,
    Scalar,
    Seed,
    Statistic,
)
from kgbench.core.details.where import Where

Detail = (
    Shape | Strides | StorageOffset | Dtype | WrongAttribute | Alias | Guard | InputChanged | PointersChanged
    | Mismatch | RootMeanSquare | Scalar | NoCanonicalForm | Impossible | Seed | Statistic
    | Deadline | QueueStalled | HostMemory | Raised | Crash | RuleBroken | NoEntry | PolicyBroken | PhysicalBound
    | StateUnfit
    | Lacking | Capability | DeviceMemory | NotApplicable | NoLibrary | NoCode | NoCandidate | NotOffered
    | HarnessTrouble
)  # fmt: skip
"""The detail of a verdict. A new type needs a name below and a sentence; ``kgbench/prompts/public.py`` has what models
are told of it, and they are told nothing of a type that is missing there.
"""

DETAILS: Final[Mapping[str, type[Detail]]] = {
    "shape": Shape,
    "strides": Strides,
    "storage offset": StorageOffset,
    "dtype": Dtype,
    "attribute": WrongAttribute,
    "alias": Alias,
    "guard": Guard,
    "input changed": InputChanged,
    "pointers changed": PointersChanged,
    "value": Mismatch,
    "root mean square": RootMeanSquare,
    "scalar": Scalar,
    "no canonical form": NoCanonicalForm,
    "impossible value": Impossible,
    "seed": Seed,
    "statistic": Statistic,
    "deadline": Deadline,
    "queue stalled": QueueStalled,
    "host memory": HostMemory,
    "exception": Raised,
    "crash": Crash,
    "rule broken": RuleBroken,
    "no entry": NoEntry,
    "state": StateUnfit,
    "policy": PolicyBroken,
    "physical bound": PhysicalBound,
    "lacking": Lacking,
    "capability": Capability,
    "device memory": DeviceMemory,
    "not applicable": NotApplicable,
    "no library": NoLibrary,
    "no code": NoCode,
    "no candidate": NoCandidate,
    "not offered": NotOffered,
    "harness": HarnessTrouble,
}
"""The types by their name in ``results.jsonl``."""
_NAMES: Final = {cls: name for name, cls in DETAILS.items()}


def detail_to_json(detail: Detail | None) -> dict[str, Any] | None:
    """``{"type": "shape", …}``: the type's name and its fields; None for None."""
    return None if detail is None else {"type": _NAMES[type(detail)], **dataclasses.asdict(detail)}


def detail_from_json(data: Mapping[str, Any] | None) -> Detail | None:
    """The inverse; None for None, for a type that a newer version has, and where a field is missing or damaged."""
    cls = DETAILS.get(str(data.get("type"))) if data else None
    if cls is None or data is None:
        return None
    try:
        found: Detail = _made(cls, data)
    except (KeyError, TypeError, ValueError):
        return None
    return found


def where_from_json(data: Mapping[str, Any] | None) -> Where | None:
    """None for None, and where what is stored is damaged or of a newer version."""
    try:
        return None if data is None else typing.cast(Where, _made(Where, data))
    except (KeyError, TypeError, ValueError):
        return None


def _made(cls: type, data: Mapping[str, Any]) -> Any:
    """A frozen dataclass of JSON's data; unknown keys are ignored. Raises TypeError, ValueError."""
    kinds = typing.get_type_hints(cls)
    return cls(**{each.name: _read(kinds[each.name], data[each.name]) for each in _given(cls, data)})


def _given(cls: type, data: Mapping[str, Any]) -> list[dataclasses.Field[Any]]:
    return [each for each in dataclasses.fields(cls) if each.name in data]


def _read(kind: Any, value: Any) -> Any:
    """One field's value as its annotation has it: tuples of lists, enums of text, dataclasses of mappings."""
    if isinstance(kind, types.UnionType):
        if value is None:
            return None
        kind = next(each for each in typing.get_args(kind) if each is not type(None))
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return kind(value)
    if dataclasses.is_dataclass(kind):
        return _made(typing.cast(type, kind), value)
    if typing.get_origin(kind) is tuple:
        inner = typing.get_args(kind)[0]
        return tuple(_read(inner, each) for each in value)
    return float(value) if kind is float else value
