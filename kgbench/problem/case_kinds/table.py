"""The table of docs/case-kinds.md: kind of case by problem, from the problems' files."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from kgbench.problem.case_kinds.facts import Facts
from kgbench.problem.case_kinds.kinds import KINDS
from kgbench.problem.case_kinds.reasons import SIZES, reason
from kgbench.problem.registry import Registry, load_problem

HAS: Final = "●"
OPEN: Final = "open"
"""A field of which nobody knows a reason: the case is still to be written."""
_HEAD: Final = """\
# Kinds of cases

Which kinds of cases each problem has: check cases, calls for a GPU alone, drawn and timed ones of required overloads.
Made from the problems' files and held by a test: `python -m kgbench.problem.case_kinds > docs/case-kinds.md`.
`kgbench/problem/case_kinds` has how a kind is recognised (`kinds.py`) and the table of reasons (`reasons.py`).

"""


def document() -> str:
    """docs/case-kinds.md."""
    facts = [Facts.of(load_problem(path)) for path in Registry().paths.values()]
    fields = {(each.problem.id, kind): field for each in facts for kind, field in _fields(each).items()}
    families = _families(facts, fields)
    for each in facts:
        for kind in SIZES:
            others = families[each.problem.source, each.problem.category, kind]
            if not fields[each.problem.id, kind] and others:
                fields[each.problem.id, kind] = "its category has one"
    reasons = sorted({field for field in fields.values() if field not in ("", HAS)})
    numbers = {words: str(number) for number, words in enumerate(reasons, 1)}
    return "".join([_HEAD, _kinds(facts, fields), _reasons(reasons), _table(facts, fields, numbers)])


def open_fields(text: str) -> dict[str, list[str]]:
    """By kind, the problems that have neither such a case nor a reason, from the document's text."""
    found: dict[str, list[str]] = defaultdict(list)
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == len(KINDS) + 1:
            for kind, cell in zip(KINDS, cells[1:], strict=True):
                if cell == OPEN:
                    found[kind.name].append(cells[0])
    return dict(found)


def _fields(facts: Facts) -> dict[str, str]:
    """HAS, a reason, or nothing, by kind."""
    return {kind.name: HAS if kind.has(facts) else reason(kind.name, facts) for kind in KINDS}


def _families(facts: Sequence[Facts], fields: dict[tuple[str, str], str]) -> dict[tuple[str, str, str], int]:
    """How many problems of a source and category have a kind of size."""
    found: dict[tuple[str, str, str], int] = defaultdict(int)
    for each in facts:
        for kind in SIZES:
            found[each.problem.source, each.problem.category, kind] += fields[each.problem.id, kind] == HAS
    return found


def _kinds(facts: Sequence[Facts], fields: dict[tuple[str, str], str]) -> str:
    lines = ["| kind | a case has | problems with one | with a reason | open |", "|---|---|---|---|---|"]
    for kind in KINDS:
        of_kind = [fields[each.problem.id, kind.name] for each in facts]
        has, still = of_kind.count(HAS), of_kind.count("")
        lines.append(f"| {kind.name} | {kind.words} | {has} | {len(of_kind) - has - still} | {still or ''} |")
    return "\n".join([*lines, "", ""])


def _reasons(reasons: Sequence[str]) -> str:
    head = f"{HAS} is a case of the kind, a number the reason why there is none, `{OPEN}` one that nobody has written."
    lines = [f"{number}. {words}" for number, words in enumerate(reasons, 1)]
    return "\n".join([head, "", *lines, "", ""])


def _table(facts: Sequence[Facts], fields: dict[tuple[str, str], str], numbers: dict[str, str]) -> str:
    names = [kind.name for kind in KINDS]
    lines = [f"| problem | {' | '.join(names)} |", "|---" * (len(names) + 1) + "|"]
    for each in facts:
        found = [fields[each.problem.id, name] for name in names]
        cells = [OPEN if not field else field if field == HAS else numbers[field] for field in found]
        lines.append(f"| {each.problem.id} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])
