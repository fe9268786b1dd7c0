"""Writes the files that an agent finds in its folder. All of it is also in what ``kgbench show`` prints."""

from __future__ import annotations

import json
import pprint
import shlex
import sys
from pathlib import Path
from typing import Any, Final

from kgbench.core.errors import ExpressionError
from kgbench.core.kinds import Phase
from kgbench.llm.conversation import Question
from kgbench.problem.cases import BoundArgument, TensorSpec, bind, expand_for_all_devices
from kgbench.problem.model import Access, Overload, Parameter, Problem, plain_type

KERNEL: Final = "kernel.py"
_HANDED: Final = Path(__file__).with_name("handed")
_NAMES_IN_TORCH: Final = ("dtype", "layout", "memory_format")
_MADE_THERE: Final = ("device", "Generator")
_PREPARED: Final = (
    "This problem's inputs hang together (indices into one another, packed weights, sorted offsets): these calls have "
    "the right shapes and dtypes, but values drawn one by one, so that a correct kernel may compute nonsense from them "
    "or read out of bounds. Only ./check has real inputs."
)
_NONE: Final = (
    "Nothing of this problem is timed, so there are no public sizes and no calls here: make inputs of your own from "
    "signature.json."
)
_PLAIN: Final = "The referee also judges other sizes, layouts and special values."


def fill(folder: Path, question: Question, socket: Path) -> None:
    """Write the files; ``socket`` is where ``./check`` finds somebody to ask."""
    problem = question.problem
    texts = {
        "PROMPT.md": question.prompt.text,
        "signature.json": json.dumps(signature(problem), indent=2) + "\n",
        KERNEL: "",
        "example_inputs.py": example_inputs(problem),
        "check": _check(socket),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "check").chmod(0o755)


def signature(problem: Problem) -> dict[str, Any]:
    """Entries, parameters and dtypes of a problem, for programs."""
    return {
        "problem": problem.id,
        "summary": problem.summary,
        "kind": problem.kind,
        "entries": [
            {
                "entry": overload.signature.name,
                "overload": overload.name,
                "required": overload.required,
                "signature": overload.signature.text,
                "parameters": [_parameter(each) for each in overload.signature.parameters],
                "returns": overload.signature.returns,
                "dtypes": list(overload.dtypes),
                "optional_dtypes": list(overload.optional_dtypes),
            }
            for overload in problem.overloads
        ],
    }


def example_inputs(problem: Problem) -> str:
    """A program that makes the arguments of the problem's timed calls with torch alone, and values of its own."""
    calls: dict[str, Any] = {}
    for overload in problem.overloads:
        try:
            calls |= _calls(overload)
        except ExpressionError:
            # Without its own values some variable has none; the other overloads' calls stand.
            continue
    is_prepared = any(overload.prepare is not None for overload in problem.overloads)
    note = _NONE if not calls else _PREPARED if is_prepared else _PLAIN
    text = (_HANDED / "example_inputs.py").read_text(encoding="utf-8")
    text = (
        text.replace("@TITLE@", f"Example calls of {problem.id}.")
        .replace("@NOTE@", note)
        .replace("@PYTHON@", sys.executable)
    )
    return text.replace("CALLS = {}", f"CALLS = {pprint.pformat(calls, width=118, sort_dicts=False)}")


def _calls(overload: Overload) -> dict[str, Any]:
    # The seed draws fuzz cases, of which none is taken.
    benched = (case for case in expand_for_all_devices(overload, "") if case.phase == Phase.BENCH)
    found = {}
    for case in benched:
        arguments = [
            {"name": each.name, "keyword_only": each.keyword_only, "value": _plain(each, each.value)}
            for each in bind(overload, case).arguments
        ]
        name = f"{overload.signature.name}/{case.id.removeprefix('bench-')}"
        found[name] = {
            "entry": overload.signature.name,
            "preset": case.id.split("-")[1],
            "arguments": arguments,
        }
    return found


def _plain(argument: BoundArgument, value: Any) -> Any:
    """As ``made`` of the handed file takes it."""
    if isinstance(value, TensorSpec):
        return {
            "shape": value.shape,
            "dtype": value.dtype,
            "strides": value.strides,
            "offset": value.offset,
            "extent": value.extent,
            "filled": value.access != Access.WRITE,
            "draw": (value.draw.name, *value.draw.arguments),
            "passed": str(value.passed),
            "slots": value.slots,
            "lazy": value.lazy,
            "host": value.host,
        }
    if isinstance(value, tuple):
        return [_plain(argument, each) for each in value]
    kind = plain_type(argument.type)
    if value is not None and kind in _NAMES_IN_TORCH:
        return {"torch": value}
    return {kind: value} if value is not None and kind in _MADE_THERE else value


def _parameter(parameter: Parameter) -> dict[str, Any]:
    default = {"default": parameter.default} if parameter.has_default else {}
    return {"name": parameter.name, "type": parameter.type, "keyword_only": parameter.keyword_only, **default}


def _check(socket: Path) -> str:
    text = (_HANDED / "check.py").read_text(encoding="utf-8")
    return _first_lines(sys.executable) + text.replace('SOCKET = ""', f"SOCKET = {str(socket)!r}")


def _first_lines(python: str) -> str:
    """The first lines of a script for this Python. The kernel splits a ``#!`` line at spaces, so for a path with spaces
    a shell reads the next two lines and starts Python, which reads them as a string.
    """
    if " " not in python:
        return f"#!{python} -I\n"
    return f"#!/bin/sh\n'''exec' {shlex.quote(python)} -I \"$0\" \"$@\"\n' '''\n"
