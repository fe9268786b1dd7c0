"""Every message has a number, each number is in the table and in docs/errors.md, and a trigger makes it appear."""

from __future__ import annotations

import ast
import functools
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgbench.core.errors import KgbenchError, ProblemFileError, ProblemFileErrors, UsageError
from kgbench.core.messages import GROUPS, MESSAGES, document
from kgbench.core.messages_input import INPUT
from kgbench.core.messages_service import SERVICE
from kgbench.core.messages_work import WORK

pytestmark = pytest.mark.xdist_group("messages")  # every module is parsed once
ROOT = Path(__file__).resolve().parents[2]
NUMBER = re.compile(r"KGB\d{3}$")
PASSED_ON = {
    "kgbench/problem/file_place.py:expression_error",
    "kgbench/problem/yamltree.py:fail",
    "kgbench/problem/yamltree.py:complaint",
    "kgbench/torchtools/reference_check.py:_wrong",
    "kgbench/core/errors.py:printed",
    "kgbench/cli/options.py:convert",
    "kgbench/service/problems.py:resolve",
    "kgbench/service/problems.py:prompt",
    "kgbench/service/answers.py:refused",
}
"""Functions that hand on a number that they were given; ``fail`` of options.py is click's, which gets KGB101."""


@functools.cache
def sources() -> tuple[tuple[str, ast.Module], ...]:
    """Every module of ours but the tables of messages; candidates are no modules of ours."""
    found = []
    for path in sorted((ROOT / "kgbench").rglob("*.py")):
        name = str(path.relative_to(ROOT))
        if not name.startswith("kgbench/core/message") and not {"examples", "files"} & set(path.parts):
            found.append((name, ast.parse(path.read_text(encoding="utf-8"))))
    return tuple(found)


@functools.cache
def error_classes() -> set[str]:
    """Names of everything below KgbenchError, as the text says."""
    found = {"KgbenchError"}
    classes = [node for _, tree in sources() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    while more := {c.name for c in classes if {ast.unparse(base) for base in c.bases} & found} - found:
        found |= more
    return found


def calls_that_say(tree: ast.AST) -> Iterator[tuple[str, ast.Call, ast.expr | None]]:
    """(function it stands in, call, its first argument) of what makes a message.

    Not click's own ``fail``, and not the number of a worker's request.
    """
    takes_number = {"numbered", "fail", "complaint", *error_classes()} - {"ProblemFileErrors", "KgbenchError"}
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in (node for node in ast.walk(function) if isinstance(node, ast.Call)):
            made, arguments = call.func, list(call.args)
            if last_name(made) == "partial" and isinstance(made, ast.Name) and arguments:
                made, arguments = arguments[0], arguments[1:]
            if last_name(made) not in takes_number:
                continue
            owner = ast.unparse(made).rpartition(".")[0]
            if owner not in ("click", "ctx", "request"):
                yield function.name, call, arguments[0] if arguments else None


def last_name(node: ast.expr) -> str:
    """``c`` of ``a.b.c`` and of ``c``; nothing for what is no name. Much faster than ``ast.unparse``."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


@functools.cache
def places() -> dict[str, list[str]]:
    """Where each number is written."""
    found: dict[str, list[str]] = {}
    for name, tree in sources():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and NUMBER.match(node.value):
                found.setdefault(node.value, []).append(f"{name}:{node.lineno}")
    return found


def test_every_message_is_written_with_its_number() -> None:
    without = []
    for name, tree in sources():
        for function, call, first in calls_that_say(tree):
            literal = isinstance(first, ast.Constant) and NUMBER.match(str(first.value))
            if not literal and f"{name}:{function}" not in PASSED_ON:
                without.append(f"{name}:{call.lineno}: {ast.unparse(call)}")
    assert without == []


def test_what_is_said_beside_the_work_has_a_number() -> None:
    said = [
        (name, ast.unparse(call.args[0]))
        for name, tree in sources()
        for call in ast.walk(tree)
        if name.startswith("kgbench/harness/") and isinstance(call, ast.Call) and last_name(call.func) == "say"
    ]
    assert said
    assert [each for each in said if not each[1].startswith("numbered('KGB6")] == []


def test_every_number_is_in_the_table_and_every_one_there_is_used() -> None:
    assert sorted(places()) == list(MESSAGES)
    assert len(MESSAGES) == len(INPUT) + len(WORK) + len(SERVICE)


def test_every_number_belongs_to_a_group() -> None:
    assert {number[:4] for number in MESSAGES} == set(GROUPS)
    assert all(each.meaning.endswith(".") and each.step.endswith(".") for each in MESSAGES.values())


def test_document_is_what_the_table_says() -> None:
    written = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")
    assert written == document(), "write it anew: python -m kgbench.core.messages > docs/errors.md"


def test_errors_carry_their_number_and_survive_another_process() -> None:
    one = ProblemFileError("KGB222", "aten/add.yaml", 3, "entry", "is missing", "add it")
    several = ProblemFileErrors([one, ProblemFileError("KGB225", "aten/add.yaml", 9, "cases", "is empty")])
    for error in (UsageError("KGB113", "there is no problem"), one, several):
        again: KgbenchError = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), again.number) == (type(error), str(error), error.number)
        assert error.__notes__ == [f"{error.number}: see docs/errors.md"]
    assert one.printed == "KGB222: aten/add.yaml:3: entry: is missing; add it"
    assert several.printed == f"{one.printed}\nKGB225: aten/add.yaml:9: cases: is empty"
