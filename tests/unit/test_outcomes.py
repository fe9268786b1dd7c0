"""All that is known of an outcome stands in one table: kgbench/core/outcomes.py."""

from __future__ import annotations

import ast
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgbench.core.outcomes import Blame, Group, Listed, Outcome, document
from kgbench.core.types import result_from_json
from tests.unit.made_results import result

ROOT = Path(__file__).resolve().parents[2]
STORED = (
    "passed", "wrong value", "wrong shape", "wrong dtype", "input changed", "compile error", "runtime error", "crashed",
    "timeout", "out of memory", "rejected", "no candidate", "no code", "skipped", "harness error",
)  # fmt: skip
"""Texts in the results of earlier releases."""
MOST = 2
"""Outcomes that code may tell apart by name; what tells more apart is a fact of the table."""

PROSE = ROOT / "kgbench" / "prompts" / "logs.py"
"""Takes verdicts' sentences apart, each outcome's in its own way."""


def test_stored_results_are_read() -> None:
    for text in STORED:
        read = result_from_json({**result("aten/exp").to_json(), "outcome": text})
        assert str(read.outcome) == text
        assert pickle.loads(pickle.dumps(read.outcome)) is read.outcome


def test_docs_outcomes_is_current() -> None:
    written = (ROOT / "docs" / "outcomes.md").read_text(encoding="utf-8")
    assert written == document(), "write it anew: python -m kgbench.core.outcomes > docs/outcomes.md"


def test_only_what_passed_is_right() -> None:
    right = [each for each in Outcome if each.facts.group is Group.RIGHT]
    assert right == [each for each in Outcome if each.facts.listed is Listed.NOT] == [Outcome.PASSED]
    for each in Outcome:
        assert each.is_failure is (each.facts.blames in (Blame.CANDIDATE, Blame.HARNESS))
        assert not (each.facts.called and not each.facts.has_code)


def told_apart(tree: ast.Module) -> Iterator[tuple[int, set[str]]]:
    """(line, outcomes) of each display of outcomes, and of the comparisons of each function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
            yield node.lineno, named(node)
        if isinstance(node, ast.FunctionDef):
            compared = (each for each in ast.walk(node) if isinstance(each, ast.Compare | ast.match_case))
            yield node.lineno, set().union(*map(named, compared))


def named(node: ast.AST) -> set[str]:
    attributes = (each for each in ast.walk(node) if isinstance(each, ast.Attribute))
    return {each.attr for each in attributes if ast.unparse(each.value).rpartition(".")[2] == "Outcome"}


@pytest.mark.parametrize(
    "source",
    [
        "BAD = (Outcome.CRASHED, Outcome.TIMEOUT, Outcome.REJECTED)",
        "BAD = {Outcome.CRASHED: 1, outcomes.Outcome.TIMEOUT: 2, Outcome.REJECTED: 3}",
        "def f(o):\n if o is Outcome.CRASHED: return 1\n if o in (Outcome.TIMEOUT, Outcome.REJECTED): return 2",
    ],
)
def test_a_table_of_outcomes_is_seen(source: str) -> None:
    assert any(len(names) > MOST for _, names in told_apart(ast.parse(source)))


def test_no_other_module_has_a_table_of_outcomes() -> None:
    found = []
    for path in sorted((ROOT / "kgbench").rglob("*.py")):
        if not {"examples", "files"} & set(path.parts) and path != PROSE:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            tables = ((line, names) for line, names in told_apart(tree) if len(names) > MOST)
            found += [f"{path.relative_to(ROOT)}:{line}: {', '.join(sorted(names))}" for line, names in tables]
    assert not found, "ask outcome.facts instead"
