"""Strict JSON, and hashes of texts.

A float that is not finite is written as the text ``nan``, ``inf`` or ``-inf``, a complex number as text. Reading turns
the three texts back into floats inside timings, where numbers are needed.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_NOT_FINITE: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""Floats by the text that stands for them."""
NOT_FINITE_BYTES: Final = tuple(f'"{name}"'.encode() for name in _NOT_FINITE)
"""The three texts as they stand in a line. A line without any of them needs no conversion of its timings."""


def json_text(value: object, *, indent: int | None = None) -> str:
    """Strict JSON: see the module's text for what happens to floats that are not finite."""
    return json.dumps(_strict(value), allow_nan=False, indent=indent, ensure_ascii=False)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def with_floats(timing: dict[str, Any]) -> dict[str, Any]:
    """The timing with floats in place of the three texts."""
    return {key: _to_float(value) for key, value in timing.items()}


def _to_float(value: Any) -> Any:
    if isinstance(value, list):
        return [_to_float(entry) for entry in value]
    if isinstance(value, dict):
        return with_floats(value)
    return _NOT_FINITE.get(value, value) if isinstance(value, str) else value


def _strict(value: Any) -> Any:
    match value:
        case None | bool() | int():
            return value
        case str():
            return value.encode("utf-8", "replace").decode()  # a lone surrogate from a candidate's text is no UTF-8
        case float():
            return value if math.isfinite(value) else str(value)
        case complex() | Path():
            return str(value)
        case Mapping():
            return {str(key): _strict(entry) for key, entry in value.items()}
        case list() | tuple():
            return [_strict(entry) for entry in value]
    raise TypeError(f"no JSON for {type(value).__name__}: {value!r}")
