"""Resolves spellings of a problem's id, and suggests known words for unknown ones.

``aten/add``, ``aten::add``, ``aten/add.Tensor``, ``add.Tensor`` and, where only one source has it, ``add`` are one
problem.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kgbench.core.errors import UsageError


@dataclass(frozen=True)
class Name:
    """What a spelling means."""

    id: str
    """``<source>/<name>``."""
    overload: str | None = None
    """``Tensor`` in ``add.Tensor``; None when the spelling names none. Whether it exists is not checked here."""


def resolve(spelling: str, ids: Sequence[str]) -> Name:
    """The problem among ``ids`` that ``spelling`` means; UsageError, with the closest ids, when none or several."""
    wanted = spelling.strip().replace("::", "/")
    base, dot, overload = wanted.partition(".")
    for name, suffix in ((wanted, None), (base, overload if dot else None)):
        found = _matching(name, ids)
        if len(found) == 1:
            return Name(found[0], suffix)
        if found:
            raise UsageError("KGB114", f"'{spelling}' means {' and '.join(found)}; write the source too")
    raise UsageError("KGB113", f"there is no problem '{spelling}'; {hint(base, ids)}")


def _matching(name: str, ids: Sequence[str]) -> list[str]:
    """Exact matches, else those that differ in capitals only."""
    for fold in (str, str.casefold):
        wanted = fold(name)
        found = [each for each in ids if wanted in (fold(each), fold(each.partition("/")[2]))]
        if found:
            return found
    return []


def closest_ids(word: str, ids: Sequence[str], count: int = 3) -> list[str]:
    """At most ``count`` ids most like ``word``, whether or not it names a source."""
    wanted = word.replace("::", "/").casefold()
    by_form: dict[str, str] = {}
    for each in ids:
        by_form[each.casefold()] = each
        by_form.setdefault(each.partition("/")[2].casefold(), each)
    alike = difflib.get_close_matches(wanted, by_form, n=2 * count, cutoff=0.5)
    inside = [form for form in by_form if wanted and wanted in form]
    return list(dict.fromkeys(by_form[form] for form in (*alike, *inside)))[:count]


def hint(word: str, ids: Sequence[str]) -> str:
    """The ids closest to ``word`` as the end of a sentence."""
    near = closest_ids(word, ids)
    return f"closest: {', '.join(near)}" if near else "kgbench list shows all"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """``did you mean 'x'?`` or, when nothing is alike, the list of what there is."""
    names = list(known)
    alike = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    return f"did you mean '{alike[0]}'?" if alike else f"there are {', '.join(names) or 'none'}"
