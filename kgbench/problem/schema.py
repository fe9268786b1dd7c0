"""The JSON Schema of problem files, for editors: ``python -m kgbench.problem.schema > kgbench/problem/schema.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

PATH: Final = Path(__file__).with_name("schema.json")


def schema_text() -> str:
    """The content of ``schema.json``."""
    from kgbench.problem.format.keys import File
    from kgbench.problem.format.leaves import DEFINITIONS

    made = File.model_json_schema()
    schema = _tidy({**made, "$defs": {**made["$defs"], **DEFINITIONS}})
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def schema_line() -> str:
    """The first line of a problem file. With it, editors complete keys and mark errors."""
    return f"# yaml-language-server: $schema={PATH.as_uri()}\n"


def _tidy(schema: Any) -> Any:
    """The schema without null and default null for optional keys, and without titles.

    pydantic writes an optional key as one that may be null, which problem files do not allow. Titles repeat the keys.
    """
    if isinstance(schema, list):
        return [_tidy(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "definition" in schema:
        schema = {**schema, "$ref": f"#/$defs/{schema['definition']}"}
    plain = {
        key: _tidy(part)
        for key, part in schema.items()
        if not (key == "default" and part is None) and not (key in ("title", "definition") and isinstance(part, str))
    }
    kinds = [part for part in plain.get("anyOf", ()) if part != {"type": "null"}]
    if len(kinds) == 1:
        del plain["anyOf"]
        return {**kinds[0], **plain}
    return {**plain, "anyOf": kinds} if kinds else plain


if __name__ == "__main__":
    print(schema_text(), end="")
