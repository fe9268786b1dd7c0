"""Nobody recovers a fact from a sentence: a reason is printed and never searched, split or compared."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgbench.core.paths import PACKAGE

SENTENCES = ("reason", "printed")
"""Attributes that hold sentences of ours."""
MAKERS = ("_words", "sentence")
"""How the names of functions and properties end that make sentences."""
SEARCHES = ("startswith", "endswith", "find", "index", "partition", "rpartition", "split", "removeprefix", "count")
"""Methods of text by which a fact is taken out of a sentence."""
PATTERNS = ("match", "search", "fullmatch", "findall", "finditer", "split", "sub")
"""Functions of ``re`` that do the same."""


def is_sentence(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name):
            return name in SENTENCES
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name.endswith(MAKERS) and name != "_words"  # that one makes a set of words
        case _:
            return False


def readings(text: str) -> Iterator[int]:
    """Lines that take a sentence apart."""
    if not any(word in text for word in (*SENTENCES, *MAKERS)):
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Compare(left=left, comparators=others) if any(map(is_sentence, (left, *others))):
                # An empty one may be told from one that says something.
                if not all(is_sentence(each) or ast.unparse(each) in ("''", "None") for each in (left, *others)):
                    yield node.lineno
            case ast.Call(func=ast.Attribute(value=of, attr=name)) if is_sentence(of) and name in SEARCHES:
                yield node.lineno
            case ast.Call(func=ast.Attribute(attr=name), args=given) if name in PATTERNS:
                if any(map(is_sentence, given)):
                    yield node.lineno
            case _:
                pass


def test_no_reason_is_read_back() -> None:
    found = {
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in PACKAGE.rglob("*.py")
        for line in readings(path.read_text(encoding="utf-8"))
    }
    assert found == set()


@pytest.mark.parametrize(
    "text",
    [
        "if 'lacks' in verdict.reason: pass",
        "if result.reason == 'late': pass",
        "kind = failure.reason.partition(':')[0]",
        "found = re.search(r'case (\\w+)', result.reason)",
        "if error.printed.startswith('KGB3'): pass",
        "value = problem_set_words(info).removeprefix('problem set: ')",
        "is_open = re.search('[A-Z]{4}', state_words(plan))",
    ],
)
def test_each_way_of_reading_one_is_seen(text: str) -> None:
    assert list(readings(text)) == [1]


def test_what_only_prints_one_is_none() -> None:
    assert list(readings("print(verdict.reason, end=verdict.reason == '')\nf'{a.reason}'\n")) == []


def test_the_package_is_looked_through() -> None:
    assert Path(PACKAGE, "harness/verdict/judge.py").is_file()
