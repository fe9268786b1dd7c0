"""Schemas and documentation of ATen's operators, from the installed torch.

``python -m kgbench.torchtools.operator_facts``: standard input is JSON, the names of overloads by problem id; standard
output gets one JSON line with torch's version and one per problem.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from typing import Any, Final

import torch

from kgbench.harness.machine.processes import own_lines

_PLACES: Final = ("torch", "torch.Tensor", "torch.nn.functional", "torch.special", "torch.linalg")
"""Modules in which torch documents its operators; the first with a text is used."""
_POINTER: Final = re.compile(
    r"(?:Alias for|See|In-place version of|Out-of-place version of)\s+:\w+:`~?([\w.]+)(?:\(\))?`"
)
"""A docstring that only names another one."""
_POINTERS: Final = 240
"""Characters below which a docstring may be only a pointer to another one."""
_MOST: Final = 6000
"""Maximum length of a docstring, in characters; longer ones end in examples."""


def facts(problem: str, overloads: list[str]) -> dict[str, Any]:
    """The answer about one problem, ``aten/NAME``."""
    name = problem.partition("/")[2]
    packet = getattr(torch.ops.aten, name)
    schemas = [str(getattr(packet, each)._schema) for each in overloads if each in packet.overloads()]
    documented_as, text = documentation(name)
    return {"problem": problem, "schemas": schemas, "documented_as": documented_as, "documentation": text}


def documentation(name: str) -> tuple[str, str]:
    """The place of an operator's documentation and its text; both empty without documentation."""
    for place in _PLACES:
        dotted = f"{place}.{name.removeprefix('special_')}"
        text = _text(dotted)
        pointer = _POINTER.search(text) if len(text) < _POINTERS else None
        other = f"torch.{pointer[1].removeprefix('torch.')}" if pointer else ""
        # An alias names the documented function; use that function's text.
        if _text(other):
            return other, _shortened(_text(other))
        if text:
            return dotted, _shortened(text)
    return "", ""


def _text(dotted: str) -> str:
    found: Any = torch if dotted else None
    for part in dotted.split(".")[1:]:
        found = getattr(found, part, None)
    return inspect.cleandoc(found.__doc__ or "") if callable(found) else ""


def _shortened(text: str) -> str:
    return text if len(text) <= _MOST else text[: text.rfind("\n", 0, _MOST)] + "\n…"


def main() -> None:
    # Torch's output must not be mistaken for the answers.
    lines = own_lines()
    request = json.loads(sys.stdin.read())
    print(json.dumps({"torch": torch.__version__}), file=lines, flush=True)
    for problem, overloads in request.items():
        if hasattr(torch.ops.aten, problem.partition("/")[2]):  # a user's own problem may be called anything
            print(json.dumps(facts(problem, overloads)), file=lines, flush=True)


if __name__ == "__main__":
    main()
