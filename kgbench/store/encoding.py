"""Strict JSON, and hashes of texts.

A float that is not finite is written as the text ``nan``, ``inf`` or ``-inf``. A complex number is written as text.
When timings are read, the three texts become floats again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

_NOT_FINITE: Final = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
"""Each float that is not finite, keyed by the text that is written for it."""
NOT_FINITE_BYTES: Final = tuple(f'"{name}"'.encode() for name in _NOT_FINITE)
"""The three texts, quoted, as bytes of a JSON line. A line that has none of them needs no conversion."""


def json_text(value: object, *, indent: int | None = None) -> str:
    """``value`` as strict JSON; the module's docstring says how floats that are not finite are written.

    Raises TypeError for a type that has no JSON form.
    """
    return json.dumps(_strict(value), allow_nan=False, indent=indent, ensure_ascii=False)


def sha256(text: str) -> str:
    """SHA-256 of the text's UTF-8 bytes, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def with_floats(timing: dict[str, Any]) -> dict[str, Any]:
    """A copy of the timing with each of the three texts replaced by its float."""
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
            return value.encode("utf-8", "replace").decode()  # a candidate's text may have lone surrogates
        case float():
            return value if math.isfinite(value) else str(value)
        case complex() | Path():
            return str(value)
        case Mapping():
            return {str(key): _strict(entry) for key, entry in value.items()}
        case list() | tuple():
            return [_strict(entry) for entry in value]
    raise TypeError(f"no JSON for {type(value).__name__}: {value!r}")
